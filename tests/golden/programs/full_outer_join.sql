-- shared delta: change_72fde907fdc6
SELECT c0 AS `a`, c1 AS `b`, _w FROM `l@delta`;

-- shared delta: change_f10ab1344ddb
SELECT c0 AS `c`, c1 AS `d` FROM `r@delta`;

-- shared delta: left_f9fff6f40b4a
SELECT /*+ BROADCAST(k) */ * FROM (SELECT c0 AS `a`, c1 AS `b` FROM `l@old`) AS c
LEFT SEMI JOIN (SELECT `_m0` AS _k0 FROM (SELECT `_m0` FROM (SELECT `a` AS `_m0` FROM (SELECT `a`, `b` FROM (SELECT * FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`) WHERE (`a` IS NOT NULL))))
  UNION ALL
  SELECT `_m0` FROM (SELECT `c` AS `_m0` FROM (SELECT `c`, `d` FROM (SELECT * FROM (SELECT `c`, `d` FROM `change_f10ab1344ddb`) WHERE (`c` IS NOT NULL)))))) AS k
  ON `a` <=> _k0;

-- shared delta: right_f9fff6f40b4a
SELECT /*+ BROADCAST(k) */ * FROM (SELECT c0 AS `c`, c1 AS `d` FROM `r@new`) AS c
LEFT SEMI JOIN (SELECT `_m0` AS _k0 FROM (SELECT `_m0` FROM (SELECT `a` AS `_m0` FROM (SELECT `a`, `b` FROM (SELECT * FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`) WHERE (`a` IS NOT NULL))))
  UNION ALL
  SELECT `_m0` FROM (SELECT `c` AS `_m0` FROM (SELECT `c`, `d` FROM (SELECT * FROM (SELECT `c`, `d` FROM `change_f10ab1344ddb`) WHERE (`c` IS NOT NULL)))))) AS k
  ON `c` <=> _k0;

-- shared delta: status_f9fff6f40b4a
SELECT `a`, `b`, `_was`, EXISTS (SELECT /*+ BROADCAST(r) */ 1 FROM (SELECT `c`, `d` FROM (SELECT `c`, `d` FROM `right_f9fff6f40b4a`)) AS r
  WHERE ((`c` = `a`) AND (`b` < `d`))) AS `_is`
FROM (SELECT `a`, `b`, EXISTS (SELECT /*+ BROADCAST(r) */ 1 FROM (SELECT `c`, `d` FROM (SELECT `c`, `d`, SUM(_w) AS _s FROM (SELECT `c`, `d`, 1 AS _w FROM (SELECT `c`, `d` FROM (SELECT `c`, `d` FROM `right_f9fff6f40b4a`))
        UNION ALL
        SELECT `c`, `d`, _w FROM (SELECT `c`, `d`, -1 AS _w FROM (SELECT `c`, `d` FROM (SELECT * FROM (SELECT `c`, `d` FROM `change_f10ab1344ddb`) WHERE (`c` IS NOT NULL))))) GROUP BY `c`, `d` HAVING SUM(_w) <> 0) AS g LATERAL VIEW EXPLODE(SEQUENCE(1L, ABS(_s))) x AS _i WHERE IF(_s > 0, _i, raise_error('SLACKWATER_NEGATIVE_ROW')) > 0) AS r
    WHERE ((`c` = `a`) AND (`b` < `d`))) AS `_was`
  FROM (SELECT `a`, `b` FROM `left_f9fff6f40b4a`) AS l) AS l;

-- shared delta: mirrored_f9fff6f40b4a
SELECT `c`, `d`, `_was`, EXISTS (SELECT /*+ BROADCAST(r) */ 1 FROM (SELECT `a`, `b` FROM (SELECT `a`, `b`, SUM(_w) AS _s FROM (SELECT `a`, `b`, 1 AS _w FROM (SELECT `a`, `b` FROM (SELECT `a`, `b` FROM `left_f9fff6f40b4a`))
      UNION ALL
      SELECT `a`, `b`, _w FROM (SELECT `a`, `b`, _w FROM (SELECT * FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`) WHERE (`a` IS NOT NULL)))) GROUP BY `a`, `b` HAVING SUM(_w) <> 0) AS g LATERAL VIEW EXPLODE(SEQUENCE(1L, ABS(_s))) x AS _i WHERE IF(_s > 0, _i, raise_error('SLACKWATER_NEGATIVE_ROW')) > 0) AS r
  WHERE ((`c` = `a`) AND (`b` < `d`))) AS `_is`
FROM (SELECT `c`, `d`, EXISTS (SELECT /*+ BROADCAST(r) */ 1 FROM (SELECT `a`, `b` FROM (SELECT `a`, `b` FROM `left_f9fff6f40b4a`)) AS r
    WHERE ((`c` = `a`) AND (`b` < `d`))) AS `_was`
  FROM (SELECT `c`, `d` FROM `right_f9fff6f40b4a`) AS l) AS l;

-- result delta
SELECT `a`, `b`, `c`, `d`, _w FROM (SELECT /*+ BROADCAST(l) */ l.`a`, l.`b`, r.`c`, r.`d`, l._w AS _w
  FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`) AS l
  JOIN (SELECT `c`, `d` FROM `right_f9fff6f40b4a`) AS r
    ON ((`c` = `a`) AND (`b` < `d`)))
UNION ALL
SELECT `a`, `b`, `c`, `d`, 1 AS _w FROM (SELECT /*+ BROADCAST(r) */ l.`a`, l.`b`, r.`c`, r.`d`
  FROM (SELECT `a`, `b` FROM `left_f9fff6f40b4a`) AS l
  JOIN (SELECT `c`, `d` FROM `change_f10ab1344ddb`) AS r
    ON ((`c` = `a`) AND (`b` < `d`)))
UNION ALL
SELECT `a`, `b`, `c`, `d`, _w FROM (SELECT `a`, `b`, CAST(NULL AS int) AS `c`, CAST(NULL AS int) AS `d`, _w FROM (SELECT /*+ BROADCAST(r) */ * FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`) AS l
    LEFT ANTI JOIN (SELECT `c`, `d` FROM (SELECT `c`, `d` FROM `right_f9fff6f40b4a`)) AS r
      ON ((`c` = `a`) AND (`b` < `d`))))
UNION ALL
SELECT `a`, `b`, `c`, `d`, 1 AS _w FROM (SELECT `a`, `b`, CAST(NULL AS int) AS `c`, CAST(NULL AS int) AS `d` FROM (SELECT `a`, `b` FROM (SELECT * FROM (SELECT * FROM (SELECT `a`, `b`, `_was`, `_is` FROM `status_f9fff6f40b4a`) WHERE (NOT (`_was` = `_is`))) WHERE `_was`)))
UNION ALL
SELECT `a`, `b`, `c`, `d`, _w FROM (SELECT `a`, `b`, CAST(NULL AS int) AS `c`, CAST(NULL AS int) AS `d`, _w FROM (SELECT `a`, `b`, -1 AS _w FROM (SELECT `a`, `b` FROM (SELECT * FROM (SELECT * FROM (SELECT `a`, `b`, `_was`, `_is` FROM `status_f9fff6f40b4a`) WHERE (NOT (`_was` = `_is`))) WHERE `_is`))))
UNION ALL
SELECT `a`, `b`, `c`, `d`, 1 AS _w FROM (SELECT CAST(NULL AS int) AS `a`, CAST(NULL AS int) AS `b`, `c`, `d` FROM (SELECT /*+ BROADCAST(r) */ * FROM (SELECT `c`, `d` FROM `change_f10ab1344ddb`) AS l
    LEFT ANTI JOIN (SELECT `a`, `b` FROM (SELECT `a`, `b` FROM `left_f9fff6f40b4a`)) AS r
      ON ((`c` = `a`) AND (`b` < `d`))))
UNION ALL
SELECT `a`, `b`, `c`, `d`, 1 AS _w FROM (SELECT CAST(NULL AS int) AS `a`, CAST(NULL AS int) AS `b`, `c`, `d` FROM (SELECT `c`, `d` FROM (SELECT * FROM (SELECT * FROM (SELECT `c`, `d`, `_was`, `_is` FROM `mirrored_f9fff6f40b4a`) WHERE (NOT (`_was` = `_is`))) WHERE `_was`)))
UNION ALL
SELECT `a`, `b`, `c`, `d`, _w FROM (SELECT CAST(NULL AS int) AS `a`, CAST(NULL AS int) AS `b`, `c`, `d`, _w FROM (SELECT `c`, `d`, -1 AS _w FROM (SELECT `c`, `d` FROM (SELECT * FROM (SELECT * FROM (SELECT `c`, `d`, `_was`, `_is` FROM `mirrored_f9fff6f40b4a`) WHERE (NOT (`_was` = `_is`))) WHERE `_is`))));
