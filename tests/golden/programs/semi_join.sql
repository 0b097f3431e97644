-- shared delta: change_72fde907fdc6
SELECT c0 AS `a`, c1 AS `b`, _w FROM `l@delta`;

-- shared delta: change_f10ab1344ddb
SELECT c0 AS `c`, c1 AS `d` FROM `r@delta`;

-- shared delta: left_d850aa2c9404
SELECT /*+ BROADCAST(k) */ * FROM (SELECT c0 AS `a`, c1 AS `b` FROM `l@old`) AS c
LEFT SEMI JOIN (SELECT `_m0` AS _k0 FROM (SELECT `c` AS `_m0` FROM (SELECT `c`, `d` FROM (SELECT * FROM (SELECT `c`, `d` FROM `change_f10ab1344ddb`) WHERE (`c` IS NOT NULL))))) AS k
  ON `a` <=> _k0;

-- shared delta: right_d850aa2c9404
SELECT /*+ BROADCAST(k) */ * FROM (SELECT c0 AS `c`, c1 AS `d` FROM `r@new`) AS c
LEFT SEMI JOIN (SELECT `_m0` AS _k0 FROM (SELECT `_m0` FROM (SELECT `a` AS `_m0` FROM (SELECT `a`, `b` FROM (SELECT * FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`) WHERE (`a` IS NOT NULL))))
  UNION ALL
  SELECT `_m0` FROM (SELECT `a` AS `_m0` FROM (SELECT `a`, `b` FROM (SELECT `a`, `b` FROM `left_d850aa2c9404`))))) AS k
  ON `c` <=> _k0;

-- shared delta: status_d850aa2c9404
SELECT `a`, `b`, `_was`, EXISTS (SELECT /*+ BROADCAST(r) */ 1 FROM (SELECT `c` FROM (SELECT `c`, `d` FROM `right_d850aa2c9404`)) AS r
  WHERE (`a` = `c`)) AS `_is`
FROM (SELECT `a`, `b`, EXISTS (SELECT /*+ BROADCAST(r) */ 1 FROM (SELECT `c` FROM (SELECT `c`, SUM(_w) AS _s FROM (SELECT `c`, 1 AS _w FROM (SELECT `c` FROM (SELECT `c`, `d` FROM `right_d850aa2c9404`))
        UNION ALL
        SELECT `c`, _w FROM (SELECT `c`, -1 AS _w FROM (SELECT `c` FROM (SELECT /*+ BROADCAST(k) */ * FROM (SELECT * FROM (SELECT `c`, `d` FROM `change_f10ab1344ddb`) WHERE (`c` IS NOT NULL)) AS c
              LEFT SEMI JOIN (SELECT `_m0` AS _k0 FROM (SELECT `_m0` FROM (SELECT `a` AS `_m0` FROM (SELECT `a`, `b` FROM (SELECT * FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`) WHERE (`a` IS NOT NULL))))
                UNION ALL
                SELECT `_m0` FROM (SELECT `a` AS `_m0` FROM (SELECT `a`, `b` FROM (SELECT `a`, `b` FROM `left_d850aa2c9404`))))) AS k
                ON `c` <=> _k0)))) GROUP BY `c` HAVING SUM(_w) <> 0) AS g LATERAL VIEW EXPLODE(SEQUENCE(1L, ABS(_s))) x AS _i WHERE IF(_s > 0, _i, raise_error('SLACKWATER_NEGATIVE_ROW')) > 0) AS r
    WHERE (`a` = `c`)) AS `_was`
  FROM (SELECT `a`, `b` FROM `left_d850aa2c9404`) AS l) AS l;

-- result delta
SELECT `a`, `b`, _w FROM (SELECT /*+ BROADCAST(r) */ * FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`) AS l
  LEFT SEMI JOIN (SELECT `c` FROM (SELECT `c`, `d` FROM `right_d850aa2c9404`)) AS r
    ON (`a` = `c`))
UNION ALL
SELECT `a`, `b`, 1 AS _w FROM (SELECT `a`, `b` FROM (SELECT * FROM (SELECT * FROM (SELECT `a`, `b`, `_was`, `_is` FROM `status_d850aa2c9404`) WHERE (NOT (`_was` = `_is`))) WHERE `_is`))
UNION ALL
SELECT `a`, `b`, _w FROM (SELECT `a`, `b`, -1 AS _w FROM (SELECT `a`, `b` FROM (SELECT * FROM (SELECT * FROM (SELECT `a`, `b`, `_was`, `_is` FROM `status_d850aa2c9404`) WHERE (NOT (`_was` = `_is`))) WHERE `_was`)));
