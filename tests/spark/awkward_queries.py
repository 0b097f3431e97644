"""Awkward queries over the tables of `awkward_rows.py`: every clause, in combinations that are rarely written.

Marks: `t`, ties are left open, so that only `verify()` can judge; `f`, texts are compared in lower case; `z`, -0.0 is
not 0.0; `b`, lists are compared as bags; `R`, must be refused; `i`, also kept by the strategy `incremental`.
"""

from __future__ import annotations

QUERIES: dict[str, tuple[str, str]] = {
    "join01_chain_mixed": ("i", """
        SELECT t.id, t.v, s.w, o.o_id, c.name FROM t LEFT JOIN s ON t.k = s.k AND t.v < s.w LEFT JOIN o ON s.w =
        o.c_id AND o.amt > t.v FULL JOIN c ON o.c_id = c.c_id"""),
    "join02_full_nullsafe": ("i", """
        SELECT t.id, t.g, s.g AS sg, s.w FROM t FULL JOIN s ON t.k <=> s.k AND t.g <=> s.g"""),
    "join03_full_nonequi": ("i", "SELECT t.id, s.w FROM t FULL JOIN s ON t.v > s.w AND (t.k = s.k OR t.g = s.g)"),
    "join04_right_then_left": ("", """
        SELECT t.id, s.w, c.c_id FROM t RIGHT JOIN s ON t.k = s.k LEFT JOIN c ON coalesce(t.v, s.w) = c.c_id"""),
    "join05_using_natural": ("", "SELECT k, g, t.v, s.w FROM t FULL JOIN s USING (k, g)"),
    "join06_natural_right": ("", "SELECT * FROM (SELECT k, g, v FROM t) NATURAL RIGHT JOIN (SELECT k, w FROM s)"),
    "join07_on_false": ("", "SELECT t.id, s.w FROM t LEFT JOIN s ON t.v > 8 AND s.w IS NULL"),
    "join08_full_expr_keys": ("i", """
        SELECT t.id, s.w FROM t FULL JOIN s ON t.k + 1 = s.k * 2 AND upper(t.g) = upper(s.g)"""),
    "join09_double_keys": ("i", "SELECT t.id, t.d, s.x FROM t LEFT JOIN s ON t.d = s.x"),
    "join10_self_full": ("i", "SELECT a.id AS x, b.id AS y FROM t a FULL JOIN t b ON a.k = b.v AND a.g <=> b.g"),
    "join11_semi_under_outer": ("i", """
        SELECT c.name, x.v FROM c LEFT JOIN (SELECT * FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND
        s.w > t.v)) x ON c.c_id = x.k"""),
    "join12_anti_over_outer": ("", """
        SELECT y.id, y.w FROM (SELECT t.id, t.k, s.w FROM t LEFT JOIN s ON t.k = s.k) y LEFT ANTI JOIN o ON y.w
        = o.c_id"""),
    "join13_values": ("", """
        SELECT t.id, v.label FROM t LEFT JOIN (VALUES (1, 'one'), (2, 'two'), (2, 'zwei'), (NULL, 'nil')) AS
        v(k, label) ON t.k <=> v.k"""),
    "join14_on_scalar": ("", "SELECT t.id, s.w FROM t LEFT JOIN s ON t.k = s.k AND s.w > (SELECT avg(v) FROM t)"),
    "join15_on_exists": ("", """
        SELECT t.id, c.name FROM t JOIN c ON t.k = c.c_id AND EXISTS (SELECT 1 FROM s WHERE s.k = t.k)"""),
    "join16_cross_filter": ("", "SELECT count(*) AS n, sum(t.v * s.w) AS p FROM t CROSS JOIN s WHERE t.v + s.w > 9"),
    "join17_three_outer_agg": ("i", """
        SELECT c.name, count(o.o_id) AS n, sum(o.amt) AS s, count(s.w) AS w FROM c LEFT JOIN o ON o.c_id =
        c.c_id LEFT JOIN s ON s.k = c.c_id GROUP BY c.name"""),
    "join18_blind_right": ("i", """
        SELECT c.c_id, min(o.amt) AS lo, avg(o.o_id) AS a, count(DISTINCT o.st) AS d FROM o RIGHT JOIN c ON
        o.c_id = c.c_id GROUP BY c.c_id"""),
    "join19_array_struct_keys": ("i", """
        SELECT a.id AS x, b.id AS y FROM n a JOIN n b ON a.arr = b.arr AND a.st <=> b.st AND a.id < b.id"""),
    "join20_left_struct_key": ("", """
        SELECT a.id AS x, b.id AS y FROM n a LEFT JOIN n b ON a.st = b.st AND a.id <> b.id"""),
    "join21_map_condition": ("", """
        SELECT n.id, c.name FROM n LEFT SEMI JOIN s ON n.mp['a'] = s.k JOIN c ON c.c_id = n.id"""),
    "sub01_not_in_nulls": ("i", "SELECT id FROM t WHERE k NOT IN (SELECT k FROM s WHERE w > 3)"),
    "sub02_not_in_corr": ("i", "SELECT id FROM t WHERE v NOT IN (SELECT w FROM s WHERE s.g = t.g)"),
    "sub03_not_in_two_cols": ("", "SELECT id FROM t WHERE (k, g) NOT IN (SELECT k, g FROM s WHERE w < 4)"),
    "sub04_exists_or": ("i", """
        SELECT id, EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND s.w = t.v) AS e FROM t WHERE v > 5 OR EXISTS
        (SELECT 1 FROM c WHERE c.c_id = t.k) OR k NOT IN (SELECT o.c_id FROM o WHERE o.st = 'open')"""),
    "sub05_in_null_const": ("", "SELECT id, 3 NOT IN (SELECT k FROM s) AS a, k IN (SELECT w FROM s) AS b FROM t"),
    "sub06_not_exists_key": ("i", """
        SELECT c_id, name FROM c WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.c_id = c.c_id AND o.st = 'open')"""),
    "sub07_exists_key_dup": ("i", "SELECT c.c_id, c.name, c.n_id FROM c WHERE c_id IN (SELECT k FROM t WHERE v > 2)"),
    "sub08_semi_by_key": ("i", """
        SELECT o_id, st FROM o WHERE c_id IN (SELECT c_id FROM c WHERE n_id < 3) AND o_id NOT IN (SELECT id FROM
        t WHERE id IS NOT NULL)"""),
    "sub09_exists_uncorrelated": ("", """
        SELECT id FROM t WHERE EXISTS (SELECT 1 FROM s WHERE w > 8) AND NOT EXISTS (SELECT 1 FROM s WHERE w =
        77)"""),
    "sub10_nested_in": ("", """
        SELECT id FROM t WHERE k IN (SELECT k FROM s WHERE w IN (SELECT c_id FROM o WHERE st <> 'open' OR st IS
        NULL))"""),
    "sub12_not_in_values": ("", "SELECT id FROM t WHERE v NOT IN (SELECT col1 FROM VALUES (1), (NULL)) OR g = 'a'"),
    "sca01_select_where_having": ("i", """
        SELECT g, sum(v) AS s, (SELECT max(w) FROM s) AS m FROM t WHERE v >= (SELECT min(w) FROM s) GROUP BY g
        HAVING sum(v) > (SELECT count(*) FROM s) / 4"""),
    "sca02_corr_count_bug": ("i", "SELECT id, (SELECT count(*) FROM s WHERE s.k = t.k AND s.w > 2) AS n FROM t"),
    "sca03_corr_limit1": ("", """
        SELECT id, (SELECT w FROM s WHERE s.k = t.k ORDER BY w DESC NULLS LAST, g LIMIT 1) AS w FROM t"""),
    "sca04_order_by_scalar": ("", "SELECT id, v FROM t ORDER BY v - (SELECT max(w) FROM s), id"),
    "sca05_scalar_none": ("", """
        SELECT id FROM t WHERE v > (SELECT w FROM s WHERE w = 12345) OR (SELECT w FROM s WHERE w = 12345) IS
        NULL"""),
    "sca06_in_filter_agg": ("", """
        SELECT g, sum(v) FILTER (WHERE v > (SELECT avg(w) FROM s)) AS x, count(*) AS n FROM t GROUP BY g"""),
    "sca07_corr_by_key": ("i", """
        SELECT o_id, (SELECT name FROM c WHERE c.c_id = o.c_id) AS nm, (SELECT nation FROM c JOIN nn USING
        (n_id) WHERE c.c_id = o.c_id) AS na FROM o"""),
    "sca08_corr_avg": ("i", "SELECT id, v FROM t WHERE v > (SELECT avg(x.v) FROM t x WHERE x.g = t.g)"),
    "sca09_corr_nonequi": ("", "SELECT id, (SELECT max(w) FROM s WHERE s.w < t.v) AS w FROM t"),
    "sca10_twice": ("", """
        SELECT id, v - (SELECT max(w) FROM s) AS a FROM t WHERE v < (SELECT max(w) FROM s) UNION ALL SELECT w,
        (SELECT max(w) FROM s) FROM s"""),
    "sca11_struct": ("", "SELECT id, (SELECT max(st) FROM n WHERE n.g = t.g).a AS a FROM t"),
    "lat01_agg": ("i", """
        SELECT c.name, x.n, x.m FROM c, LATERAL (SELECT count(*) AS n, max(amt) AS m FROM o WHERE o.c_id =
        c.c_id) x"""),
    "lat02_top": ("", """
        SELECT c.name, x.o_id FROM c LEFT JOIN LATERAL (SELECT o_id FROM o WHERE o.c_id = c.c_id ORDER BY amt
        DESC, o_id LIMIT 2) x"""),
    "lat04_explode": ("", "SELECT n.id, e.pos, e.col FROM n, LATERAL posexplode(arr) e"),
    "gen01_outer_inline": ("i", "SELECT id, p, qq FROM n LATERAL VIEW OUTER inline(items) x AS p, qq"),
    "gen02_stack": ("", """
        SELECT id, nm, val FROM t LATERAL VIEW stack(2, 'k', k, 'v', v) x AS nm, val WHERE val IS NOT NULL"""),
    "gen03_map_outer_agg": ("i", """
        SELECT mk, count(*) AS n, sum(mv) AS s FROM n LATERAL VIEW OUTER explode(mp) x AS mk, mv GROUP BY mk"""),
    "gen04_double_posexplode": ("", """
        SELECT id, pos, y, p FROM n LATERAL VIEW OUTER posexplode(arr) a AS pos, y LATERAL VIEW
        explode(transform(items, i -> i.p)) b AS p"""),
    "gen05_json_tuple": ("", """
        SELECT id, a, b FROM (SELECT id, to_json(st) AS j FROM n) LATERAL VIEW json_tuple(j, 'a', 'b') x AS a, b"""),
    "agg01_grouping_sets_dup": ("i", """
        SELECT g, k, grouping_id() AS gi, grouping(g) AS gg, count(*) AS n, sum(v) AS s FROM t GROUP BY GROUPING
        SETS ((g, k), (g), (g), (), (k))"""),
    "agg02_cube_rollup": ("i", """
        SELECT g, ok, k % 2 AS h, sum(m) AS s, max(d) AS x FROM t GROUP BY CUBE (g, ok), ROLLUP (k % 2)"""),
    "agg03_distincts_filter": ("i", """
        SELECT g, count(DISTINCT k) AS a, count(DISTINCT v) FILTER (WHERE v > 2) AS b, sum(DISTINCT v) AS c,
        avg(v) AS d, count(DISTINCT k, v) AS e, max(m) FILTER (WHERE ok) AS f FROM t GROUP BY g"""),
    "agg04_percentiles": ("i", """
        SELECT g, percentile(v, 0.25) AS a, median(m) AS b, percentile_cont(0.5) WITHIN GROUP (ORDER BY v DESC)
        AS c, percentile_disc(0.5) WITHIN GROUP (ORDER BY v) AS d, mode(v, true) AS e, percentile(v, array(0.1,
        0.9)) AS f FROM t GROUP BY g"""),
    "agg05_lists": ("b", """
        SELECT g, collect_list(v) AS a, collect_set(k) AS b, array_agg(DISTINCT ok) AS c FROM t GROUP BY g"""),
    "agg06_listagg": ("", """
        SELECT g, listagg(st.b, ',') WITHIN GROUP (ORDER BY st.b) AS a, string_agg(DISTINCT st.b, '|') WITHIN
        GROUP (ORDER BY st.b) AS b FROM n GROUP BY g"""),
    "agg07_by_bits": ("i", """
        SELECT g, max_by(v, id * 1000000 + coalesce(k, 0) * 1000 + coalesce(v, -1)) AS mb, bit_xor(k) AS x,
        bit_and(k) AS y, bit_or(v) AS z, bool_and(ok) AS e, some(ok) AS s, count_if(v > 3) AS n FROM (SELECT
        DISTINCT id, k, g, v, ok FROM t) GROUP BY g"""),
    "agg09_moments": ("i", """
        SELECT g, stddev(v) AS a, var_pop(m) AS b, skewness(v) AS c, kurtosis(v) AS e, stddev_pop(b) AS f FROM t
        GROUP BY g"""),
    "agg10_over_agg": ("i", """
        SELECT n, count(*) AS c, max(s) AS m, min(g) AS lo FROM (SELECT g, k, count(*) AS n, sum(v) AS s FROM t
        GROUP BY g, k) GROUP BY n"""),
    "agg11_global_empty": ("i", """
        SELECT count(*) AS n, sum(v) AS s, max(m) AS x, bool_or(ok) AS o, avg(k) AS a, count(DISTINCT g) AS d
        FROM t WHERE v = 4 AND g = 'b'"""),
    "agg12_float_sum_having": ("", """
        SELECT g, sum(d) AS s, avg(d) AS a FROM t WHERE d = d GROUP BY g HAVING count(*) > 1"""),
    "agg13_nan_group": ("i", "SELECT d, count(*) AS n, min(id) AS lo FROM t GROUP BY d"),
    "agg14_decimal_wide": ("i", "SELECT c_id, sum(amt) AS s, max(amt) AS m, count(amt) AS n FROM o GROUP BY c_id"),
    "agg15_try": ("i", """
        SELECT g, try_sum(b) AS s, try_avg(m) AS a, max(try_divide(v, k)) AS dv, sum(try_cast(g AS INT)) AS z
        FROM t GROUP BY g"""),
    "agg16_struct_array_group": ("i", "SELECT st, arr, count(*) AS n, max(id) AS m FROM n GROUP BY st, arr"),
    "agg17_distinct_nested": ("", "SELECT DISTINCT st, items, arr FROM n"),
    "agg18_group_by_expr": ("", """
        SELECT CASE WHEN v > 5 THEN 'hi' WHEN v IS NULL THEN NULL ELSE 'lo' END AS b, k IS NULL AS kn, sum(v) +
        count(*) * 2 AS x FROM t GROUP BY 1, 2"""),
    "agg19_approx_distinct": ("", """
        SELECT g, approx_count_distinct(v) AS n, approx_count_distinct(id, 0.01) AS p FROM t GROUP BY g"""),
    "agg20_max_by_k": ("t", """
        SELECT g, max_by(id, v) AS a, min_by(id, v) AS b, max_by(id, v, 3) AS c FROM t GROUP BY g"""),
    "agg21_group_key_lookup": ("i", """
        SELECT c.c_id, c.name, nn.nation, sum(o.amt) AS s, count(*) AS n FROM o JOIN c ON o.c_id = c.c_id JOIN
        nn ON c.n_id = nn.n_id GROUP BY c.c_id, c.name, nn.nation"""),
    "agg22_narrowed": ("i", """
        SELECT c.name, x.s, x.n FROM c JOIN (SELECT c_id, sum(amt) AS s, count(*) AS n FROM o GROUP BY c_id) x
        ON x.c_id = c.c_id WHERE c.c_id = 3 OR c.c_id = 5"""),
    "agg23_interval_avg": ("", """
        SELECT g, sum(iv) AS s, avg(iv) AS a, max(iv) AS m, sum(iv * 2) AS d FROM e GROUP BY g"""),
    "agg24_group_constant": ("", "SELECT 'all' AS a, count(*) AS n FROM t WHERE v > 100 GROUP BY 'all'"),
    "agg25_having_no_group": ("", "SELECT sum(v) AS s FROM t HAVING count(*) > 1"),
    "agg26_variance_distinct": ("", """
        SELECT g, stddev(DISTINCT v) AS a, avg(DISTINCT k) AS b, sum(DISTINCT m) AS c FROM t GROUP BY g"""),
    "agg27_hist_refused": ("R", "SELECT g, histogram_numeric(v, 3) AS h FROM t GROUP BY g"),
    "win01_frames": ("i", """
        SELECT id, dup, sum(v) OVER (PARTITION BY g ORDER BY v, id, k, dup ROWS BETWEEN 2 PRECEDING AND 1
        FOLLOWING) AS a, count(*) OVER (PARTITION BY g ORDER BY v RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS
        b, max(v) OVER (PARTITION BY g ORDER BY v DESC ROWS UNBOUNDED PRECEDING) AS c FROM (SELECT id, k, g, v,
        d, m, row_number() OVER (PARTITION BY id, k, g, v, m, ok, b, d ORDER BY v) AS dup FROM t)"""),
    "win02_ranks": ("i", """
        SELECT id, rank() OVER (PARTITION BY g ORDER BY v DESC NULLS LAST) AS a, dense_rank() OVER (PARTITION BY
        k ORDER BY v) AS b, percent_rank() OVER (PARTITION BY g ORDER BY v) AS c, cume_dist() OVER (PARTITION BY
        g ORDER BY k) AS e FROM t"""),
    "win03_positions_keyed": ("i", """
        SELECT o_id, lag(amt, 2, -1) OVER (PARTITION BY c_id ORDER BY o_id) AS a, lead(st) IGNORE NULLS OVER
        (PARTITION BY c_id ORDER BY o_id) AS b, ntile(3) OVER (PARTITION BY st ORDER BY o_id) AS c,
        nth_value(o_id, 2) OVER (PARTITION BY c_id ORDER BY o_id) AS d, first_value(st) IGNORE NULLS OVER
        (PARTITION BY c_id ORDER BY o_id DESC) AS e, last_value(st) OVER (PARTITION BY c_id ORDER BY o_id) AS f
        FROM o"""),
    "win04_last_range_peers": ("t", """
        SELECT id, last_value(v) OVER (PARTITION BY g ORDER BY k) AS a, first_value(v) IGNORE NULLS OVER
        (PARTITION BY g ORDER BY k RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS b, nth_value(v, 2) OVER
        (PARTITION BY g ORDER BY k) AS c FROM t"""),
    "win05_qualify": ("i", """
        SELECT id, g, v FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v DESC NULLS LAST, id, k, d,
        ok, b) AS rn FROM (SELECT DISTINCT * FROM t)) WHERE rn <= 2"""),
    "win06_over_agg_over_win": ("i", """
        SELECT g, r, max(c) OVER (PARTITION BY r) AS mx FROM (SELECT g, r, count(*) AS c FROM (SELECT g,
        dense_rank() OVER (PARTITION BY g ORDER BY v) AS r FROM t) GROUP BY g, r)"""),
    "win07_whole": ("", """
        SELECT o_id, row_number() OVER (ORDER BY amt DESC NULLS LAST, o_id) AS rn, sum(o_id) OVER () AS s FROM o"""),
    "win08_dates_range": ("i", """
        SELECT id, count(*) OVER (PARTITION BY g ORDER BY dd RANGE BETWEEN INTERVAL '3' DAY PRECEDING AND
        CURRENT ROW) AS a, sum(v) OVER (PARTITION BY g ORDER BY ts RANGE BETWEEN INTERVAL '36' HOUR PRECEDING
        AND INTERVAL '1' HOUR FOLLOWING) AS b, max(v) OVER (PARTITION BY g ORDER BY tn RANGE BETWEEN INTERVAL
        '1' MONTH PRECEDING AND INTERVAL '0' MONTH FOLLOWING) AS c FROM e"""),
    "win09_decimal_range": ("", """
        SELECT id, m, count(*) OVER (PARTITION BY g ORDER BY m RANGE BETWEEN 1.5 PRECEDING AND 0.25 FOLLOWING)
        AS a FROM t"""),
    "win10_float_sum": ("i", """
        SELECT id, g, k, v, sum(d) OVER (PARTITION BY g) AS s, avg(d) OVER (PARTITION BY k) AS a FROM t WHERE d
        = d AND d < 1000"""),
    "win11_ties": ("t", """
        SELECT id, row_number() OVER (PARTITION BY g ORDER BY k) AS rn, lag(v) OVER (PARTITION BY g ORDER BY k)
        AS l, ntile(2) OVER (PARTITION BY k ORDER BY g) AS n FROM t"""),
    "win12_collated_partition": ("", """
        SELECT id, nm, rank() OVER (PARTITION BY nm ORDER BY v) AS r, count(*) OVER (PARTITION BY nm) AS n FROM
        e"""),
    "win13_agg_in_window": ("i", """
        SELECT g, k, sum(v) AS s, rank() OVER (PARTITION BY g ORDER BY sum(v) DESC) AS r, sum(sum(v)) OVER
        (PARTITION BY g) AS t FROM t GROUP BY g, k"""),
    "win14_struct_partition": ("", """
        SELECT id, count(*) OVER (PARTITION BY st ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
        AS n, max(id) OVER (PARTITION BY arr) AS m FROM n"""),
    "win15_null_default_lag": ("", """
        SELECT o_id, lag(st, 1, 'none') IGNORE NULLS OVER (PARTITION BY c_id ORDER BY o_id) AS a, lead(amt, 0)
        OVER (PARTITION BY c_id ORDER BY o_id) AS b, lag(o_id, -1) OVER (PARTITION BY c_id ORDER BY o_id) AS c
        FROM o"""),
    "win16_window_join": ("i", """
        SELECT c.name, x.rn, x.o_id FROM c LEFT JOIN (SELECT c_id, o_id, row_number() OVER (PARTITION BY c_id
        ORDER BY o_id DESC) AS rn FROM o) x ON x.c_id = c.c_id AND x.rn <= 2"""),
    "lim01_nested": ("i", """
        SELECT * FROM (SELECT o_id, amt FROM o ORDER BY amt DESC NULLS LAST, o_id LIMIT 12 OFFSET 2) ORDER BY
        o_id LIMIT 5 OFFSET 3"""),
    "lim02_expr_nulls": ("i", """
        SELECT o_id FROM o ORDER BY st NULLS LAST, length(st) DESC NULLS FIRST, o_id % 3, o_id DESC LIMIT 7"""),
    "lim03_offset_only": ("", "SELECT o_id, st FROM o ORDER BY o_id OFFSET 4"),
    "lim04_ties": ("t", "SELECT g, v FROM t ORDER BY v DESC NULLS FIRST LIMIT 6"),
    "lim05_over_agg": ("i", """
        SELECT g, sum(v) AS s FROM t GROUP BY g ORDER BY s DESC NULLS LAST, g NULLS FIRST LIMIT 3"""),
    "lim06_in_subquery": ("i", """
        SELECT id, k FROM t WHERE k IN (SELECT c_id FROM c ORDER BY c_id DESC LIMIT 4) OR v = (SELECT max(w)
        FROM s)"""),
    "lim07_union_limits": ("", """
        (SELECT o_id AS x FROM o ORDER BY o_id LIMIT 3) UNION ALL (SELECT c_id FROM c ORDER BY c_id DESC LIMIT
        2) ORDER BY x LIMIT 4"""),
    "lim08_limit_of_join": ("i", """
        SELECT o.o_id, c.name FROM o LEFT JOIN c ON o.c_id = c.c_id ORDER BY o.o_id DESC LIMIT 5"""),
    "lim09_no_order": ("t", "SELECT count(*) AS n, sum(v) AS s FROM (SELECT v FROM t LIMIT 10)"),
    "lim10_distinct_order": ("", "SELECT DISTINCT g, k FROM t ORDER BY g NULLS LAST, k DESC NULLS LAST LIMIT 8"),
    "set01_nested": ("i", """
        (SELECT k, g FROM t EXCEPT ALL SELECT k, g FROM s) UNION (SELECT k, g FROM s INTERSECT ALL SELECT k, g
        FROM t) EXCEPT SELECT NULL, 'a'"""),
    "set02_intersect_nulls": ("i", "SELECT k, v FROM t INTERSECT SELECT k, w FROM s"),
    "set03_except_floats": ("i", "SELECT d FROM t EXCEPT SELECT x FROM s"),
    "set04_all_nested": ("i", """
        SELECT g FROM t INTERSECT ALL (SELECT g FROM s UNION ALL SELECT g FROM n) EXCEPT ALL SELECT g FROM e"""),
    "set05_union_distinct_types": ("", """
        SELECT id, v AS x FROM t UNION SELECT k, CAST(x AS DECIMAL(20,3)) FROM s WHERE x < 100 UNION SELECT
        c_id, NULL FROM c"""),
    "set06_except_struct": ("", """
        SELECT st, arr FROM n WHERE id % 2 = 0 EXCEPT SELECT st, arr FROM n WHERE id % 2 = 1"""),
    "cte01_thrice": ("i", """
        WITH x AS (SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g), y AS (SELECT max(n) AS m FROM x)
        SELECT a.g, a.n, b.s, y.m FROM x a JOIN x b ON a.g <=> b.g CROSS JOIN y WHERE a.n >= (SELECT avg(n) FROM
        x) - 10"""),
    "cte02_shadow": ("", """
        WITH t AS (SELECT * FROM t WHERE v > 1), s AS (SELECT k FROM t) SELECT t.id, count(s.k) AS n FROM t LEFT
        JOIN s ON t.k = s.k GROUP BY t.id"""),
    "cte03_recursive": ("", """
        WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT r.n, c.name FROM r
        JOIN c ON c.c_id = r.n"""),
    "piv01": ("i", """
        SELECT * FROM (SELECT g, k, v FROM t) PIVOT (sum(v) AS s, count(v) AS c FOR k IN (1 AS one, 2 AS two,
        NULL AS nil))"""),
    "piv02_dates": ("", """
        SELECT * FROM (SELECT g, dd, v FROM e) PIVOT (max(v) FOR dd IN (DATE '2024-01-01' AS a, DATE
        '2024-02-29' AS b))"""),
    "unp01": ("i", "SELECT * FROM (SELECT id, k, v FROM t) UNPIVOT INCLUDE NULLS (val FOR nm IN (k AS `kk`, v))"),
    "unp02_multi": ("", """
        SELECT * FROM (SELECT c_id, n_id, c_id AS c2, n_id AS n2 FROM c) UNPIVOT ((a, b) FOR nm IN ((c2, n2) AS
        p, (n2, c2) AS r))"""),
    "kind01_hof": ("", """
        SELECT id, filter(arr, x -> x > id % 3) AS a, aggregate(arr, 0, (acc, x) -> acc + coalesce(x, 0)) AS s,
        exists(arr, x -> x IS NULL) AS e, transform(items, (i, n) -> concat(i.p, CAST(n AS STRING))) AS t,
        forall(arr, x -> x > 0) AS f, zip_with(arr, arr, (x, y) -> x * y) AS z FROM n"""),
    "kind02_maps": ("", """
        SELECT id, mp['a'] AS a, map_filter(mp, (k, v) -> v > 1) AS f, size(mp) AS s, transform_values(mp, (k,
        v) -> v + 1) AS t, element_at(mp, 'b') AS b FROM n"""),
    "kind03_times": ("i", """
        SELECT date_trunc('HOUR', ts) AS h, count(*) AS n, max(tn - INTERVAL '1' MONTH) AS a, min(ts + iv) AS b,
        max(dd + INTERVAL '1-1' YEAR TO MONTH) AS c, max(ts - TIMESTAMP '2024-01-01 00:00:00') AS d,
        max(datediff(dd, DATE '2024-01-01')) AS e FROM e GROUP BY 1"""),
    "kind04_window_fn": ("", """
        SELECT window.start AS w, g, count(*) AS n FROM e GROUP BY window(ts, '1 day', '12 hours'), g"""),
    "kind05_collation": ("if", "SELECT nm, count(*) AS n, min(nm) AS lo, count(DISTINCT nm) AS d FROM e GROUP BY nm"),
    "kind06_collation_join": ("i", """
        SELECT a.id AS x, b.id AS y FROM e a LEFT JOIN e b ON a.nm = b.nm AND a.id < b.id AND b.nm <> 'cyd'"""),
    "kind07_collation_sets": ("f", "SELECT nm FROM e WHERE id < 9 EXCEPT SELECT nm FROM e WHERE id > 14"),
    "kind08_binary": ("i", "SELECT bin, hex(bin) AS h, count(*) AS n, max(id) AS m FROM e GROUP BY bin"),
    "kind09_iv_group": ("i", """
        SELECT iv, extract(SECOND FROM max(iv)) AS s, count(*) AS n FROM e WHERE iv > INTERVAL '-1' DAY GROUP BY
        iv"""),
    "kind10_decimal_overflow": ("i", """
        SELECT o_id, try_multiply(amt, amt) AS a, try_add(amt, amt) AS b, amt / 3 AS c, try_divide(amt, o_id -
        3) AS d, amt % 7 AS e FROM o"""),
    "kind11_try": ("", """
        SELECT id, try_cast(g AS INT) AS a, try_element_at(arr, 2) AS b, try_to_timestamp(g) AS c, get(arr, 0)
        AS d FROM n"""),
    "kind12_div_null": ("", """
        SELECT id, v / nullif(k, 0) AS a, v DIV nullif(k, 0) AS b, nvl2(g, g, '-') AS c, CASE k WHEN NULL THEN 1
        WHEN 2 THEN NULL END AS e, k <=> v AS f FROM t"""),
    "kind13_struct_filter": ("", """
        SELECT id, struct(g, st.a AS aa) AS s, st.b || '!' AS b FROM n WHERE st.a > 1 OR st.b IS NULL"""),
    "kind14_empty_string": ("i", "SELECT g, g = '' AS e, length(g) AS l, count(*) AS n FROM t GROUP BY g"),
    "odd01a_alias_capture_join": ("i", "SELECT z.id, z.r, u.v FROM z JOIN u ON z.r.k = u.k"),
    "odd01b_alias_capture_left": ("i", "SELECT z.id, z.r, u.v FROM z LEFT JOIN u ON z.r.k = u.k"),
    "odd01c_alias_capture_full": ("i", "SELECT z.id, z.r, u.v FROM z FULL JOIN u ON z.r.k <=> u.k"),
    "odd01d_alias_capture_scalar": ("i", "SELECT id, c, x FROM z WHERE c.x < (SELECT max(v) FROM u)"),
    "odd01e_alias_capture_semi": ("i", "SELECT id, l, k FROM z WHERE l.k IN (SELECT v FROM u)"),
    "odd01f_alias_capture_exists": ("", "SELECT id, l, k, l.k IN (SELECT v FROM u) AS e FROM z"),
    "odd01g_alias_capture_generate": ("i", "SELECT id, g, xs, y FROM z LATERAL VIEW explode(g.xs) gg AS y"),
    "odd01i_alias_capture_not_in": ("", "SELECT id, r FROM z WHERE r.k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)"),
    "odd02a_count_distinct_const": ("i", "SELECT g, count(DISTINCT 1) AS a, sum(v) AS s FROM t GROUP BY g"),
    "odd02b_count_distinct_const_global": ("", "SELECT count(DISTINCT 'x') AS a, max(v) AS m, min(k) AS n FROM t"),
    "odd02c_count_distinct_consts": ("", "SELECT g, count(DISTINCT 1, 'y') AS a, count(v) AS s FROM t GROUP BY g"),
    "odd03_regr_distinct": ("i", "SELECT g, regr_sxx(DISTINCT v, k) AS a FROM t GROUP BY g"),
    "odd03b_regr_syy_distinct": ("", "SELECT g, regr_syy(DISTINCT v, k) AS a FROM t GROUP BY g"),
    "odd04a_unpivot_gid_crash": ("", "SELECT * FROM (SELECT id, k, v FROM t) UNPIVOT (val FOR gid IN (k, v))"),
    "odd04b_unpivot_gid_renumbered": ("", """
        SELECT * FROM (SELECT g, v, k FROM t) UNPIVOT (val FOR gid IN (v AS `7`, k AS `3`))"""),
    "odd04c_unpivot_gid_grouped": ("", """
        SELECT gid, count(*) AS n, sum(val) AS s FROM (SELECT id, v, k FROM t) UNPIVOT (val FOR gid IN (v AS
        `7`, k AS `3`)) GROUP BY gid"""),
    "odd05a_nested_zero_window": ("iz", """
        SELECT id, CAST(fa AS STRING) AS txt, rn FROM (SELECT id, g, fa, rank() OVER (PARTITION BY g ORDER BY
        id) AS rn FROM n)"""),
    "odd05b_nested_zero_topk": ("iz", "SELECT id, fa FROM n ORDER BY id LIMIT 9"),
    "odd05c_nested_zero_whole": ("z", "SELECT id, fa, sf, rank() OVER (ORDER BY id) AS rn FROM n"),
    "odd05d_nested_zero_outer": ("iz", """
        SELECT CAST(x.fa AS STRING) AS txt, c.name FROM (SELECT id, fa, count(*) OVER (PARTITION BY g) AS n FROM
        n) x LEFT JOIN c ON c.c_id = x.id"""),
    "odd06a_moving_comment": ("R", "SELECT id, dd FROM e WHERE dd < date /* the day */ 'today'"),
    "odd06b_moving_raw": ("R", "SELECT id, dd FROM e WHERE dd < date r'today'"),
    "odd07_opaque_semicolon_comment": ("", "SELECT id, arrays_zip(arr, array(id)) AS z FROM n; -- done"),
    "odd08_long_min_delete": ("i", "SELECT g, sum(b) AS s FROM t GROUP BY g"),
    "odd09_vector_window": ("z", """
        SELECT id, vector_sum(vf) OVER (PARTITION BY g) AS s FROM (SELECT id, g, transform(fa, x -> CAST(x AS
        FLOAT)) AS vf FROM n WHERE size(fa) = 2)"""),
    "odd10_order_by_scalar_root": ("", """
        SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY count(*) - (SELECT max(w) FROM s), g"""),
    "odd11_map_in_redo": ("i", "SELECT id, mp, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM n"),
}  # fmt: skip
