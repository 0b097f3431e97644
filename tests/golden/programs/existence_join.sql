-- shared delta: change_72fde907fdc6
SELECT c0 AS `a`, c1 AS `b`, _w FROM `l@delta`;

-- shared delta: change_f10ab1344ddb
SELECT c0 AS `c`, c1 AS `d` FROM `r@delta`;

-- shared delta: left_9277fa72c9a5
SELECT /*+ BROADCAST(k) */ * FROM (SELECT c0 AS `a`, c1 AS `b` FROM `l@old`) AS c
LEFT SEMI JOIN (SELECT `_m0` AS _k0 FROM (SELECT `c` AS `_m0` FROM (SELECT `c`, `d` FROM (SELECT `c`, `d` FROM `change_f10ab1344ddb`)))) AS k
  ON `a` <=> _k0;

-- shared delta: right_9277fa72c9a5
SELECT /*+ BROADCAST(k) */ * FROM (SELECT c0 AS `c`, c1 AS `d` FROM `r@new`) AS c
LEFT SEMI JOIN (SELECT `_m0` AS _k0 FROM (SELECT `_m0` FROM (SELECT `a` AS `_m0` FROM (SELECT `a`, `b` FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`)))
  UNION ALL
  SELECT `_m0` FROM (SELECT `a` AS `_m0` FROM (SELECT `a`, `b` FROM (SELECT `a`, `b` FROM `left_9277fa72c9a5`))))) AS k
  ON `c` <=> _k0;

-- shared delta: status_9277fa72c9a5
SELECT `a`, `b`, `_was`, EXISTS (SELECT /*+ BROADCAST(r) */ 1 FROM (SELECT `c` FROM (SELECT `c`, `d` FROM `right_9277fa72c9a5`)) AS r
  WHERE (`a` <=> `c`)) AS `_is`
FROM (SELECT `a`, `b`, EXISTS (SELECT /*+ BROADCAST(r) */ 1 FROM (SELECT `c` FROM (SELECT `c`, SUM(_w) AS _s FROM (SELECT `c`, 1 AS _w FROM (SELECT `c` FROM (SELECT `c`, `d` FROM `right_9277fa72c9a5`))
        UNION ALL
        SELECT `c`, _w FROM (SELECT `c`, -1 AS _w FROM (SELECT `c` FROM (SELECT /*+ BROADCAST(k) */ * FROM (SELECT `c`, `d` FROM `change_f10ab1344ddb`) AS c
              LEFT SEMI JOIN (SELECT `_m0` AS _k0 FROM (SELECT `_m0` FROM (SELECT `a` AS `_m0` FROM (SELECT `a`, `b` FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`)))
                UNION ALL
                SELECT `_m0` FROM (SELECT `a` AS `_m0` FROM (SELECT `a`, `b` FROM (SELECT `a`, `b` FROM `left_9277fa72c9a5`))))) AS k
                ON `c` <=> _k0)))) GROUP BY `c` HAVING SUM(_w) <> 0) AS g LATERAL VIEW EXPLODE(SEQUENCE(1L, ABS(_s))) x AS _i WHERE IF(_s > 0, _i, raise_error('SLACKWATER_NEGATIVE_ROW')) > 0) AS r
    WHERE (`a` <=> `c`)) AS `_was`
  FROM (SELECT `a`, `b` FROM `left_9277fa72c9a5`) AS l) AS l;

-- result delta
SELECT `a`, `b`, `has`, _w FROM (SELECT `a`, `b`, EXISTS (SELECT /*+ BROADCAST(r) */ 1 FROM (SELECT `c` FROM (SELECT `c`, `d` FROM `right_9277fa72c9a5`)) AS r
    WHERE (`a` <=> `c`)) AS `has`, _w
  FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`) AS l)
UNION ALL
SELECT `a`, `b`, `has`, 1 AS _w FROM (SELECT `a`, `b`, `_is` AS `has` FROM (SELECT * FROM (SELECT `a`, `b`, `_was`, `_is` FROM `status_9277fa72c9a5`) WHERE (NOT (`_was` = `_is`))))
UNION ALL
SELECT `a`, `b`, `has`, _w FROM (SELECT `a`, `b`, `has`, -1 AS _w FROM (SELECT `a`, `b`, `_was` AS `has` FROM (SELECT * FROM (SELECT `a`, `b`, `_was`, `_is` FROM `status_9277fa72c9a5`) WHERE (NOT (`_was` = `_is`)))));
