-- shared delta: change_72fde907fdc6
SELECT c0 AS `a`, c1 AS `b`, _w FROM `l@delta`;

-- shared delta: change_f10ab1344ddb
SELECT c0 AS `c`, c1 AS `d` FROM `r@delta`;

-- shared delta: left_ae9c33815141
SELECT /*+ BROADCAST(r) */ * FROM (SELECT c0 AS `a`, c1 AS `b` FROM `l@old`) AS l
LEFT SEMI JOIN (SELECT `c` FROM (SELECT `c`, `d` FROM (SELECT `c`, `d` FROM `change_f10ab1344ddb`))) AS r
  ON ((`a` = `c`) OR ((`a` = `c`) IS NULL));

-- shared delta: right_ae9c33815141
SELECT /*+ BROADCAST(r) */ * FROM (SELECT c0 AS `c`, c1 AS `d` FROM `r@new`) AS l
LEFT SEMI JOIN (SELECT `a` FROM (SELECT `a` FROM (SELECT `a`, `b` FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`)))
  UNION ALL
  SELECT `a` FROM (SELECT `a` FROM (SELECT `a`, `b` FROM (SELECT `a`, `b` FROM `left_ae9c33815141`)))) AS r
  ON ((`a` = `c`) OR ((`a` = `c`) IS NULL));

-- shared delta: status_ae9c33815141
SELECT `a`, `b`, `_was`, EXISTS (SELECT /*+ BROADCAST(r) */ 1 FROM (SELECT `c` FROM (SELECT `c`, `d` FROM `right_ae9c33815141`)) AS r
  WHERE ((`a` = `c`) OR ((`a` = `c`) IS NULL))) AS `_is`
FROM (SELECT `a`, `b`, EXISTS (SELECT /*+ BROADCAST(r) */ 1 FROM (SELECT `c` FROM (SELECT `c`, SUM(_w) AS _s FROM (SELECT `c`, 1 AS _w FROM (SELECT `c` FROM (SELECT `c`, `d` FROM `right_ae9c33815141`))
        UNION ALL
        SELECT `c`, _w FROM (SELECT `c`, -1 AS _w FROM (SELECT `c` FROM (SELECT /*+ BROADCAST(r) */ * FROM (SELECT `c`, `d` FROM `change_f10ab1344ddb`) AS l
              LEFT SEMI JOIN (SELECT `a` FROM (SELECT `a` FROM (SELECT `a`, `b` FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`)))
                UNION ALL
                SELECT `a` FROM (SELECT `a` FROM (SELECT `a`, `b` FROM (SELECT `a`, `b` FROM `left_ae9c33815141`)))) AS r
                ON ((`a` = `c`) OR ((`a` = `c`) IS NULL)))))) GROUP BY `c` HAVING SUM(_w) <> 0) AS g LATERAL VIEW EXPLODE(SEQUENCE(1L, ABS(_s))) x AS _i WHERE IF(_s > 0, _i, raise_error('SLACKWATER_NEGATIVE_ROW')) > 0) AS r
    WHERE ((`a` = `c`) OR ((`a` = `c`) IS NULL))) AS `_was`
  FROM (SELECT `a`, `b` FROM `left_ae9c33815141`) AS l) AS l;

-- result delta
SELECT `a`, `b`, _w FROM (SELECT /*+ BROADCAST(r) */ * FROM (SELECT `a`, `b`, _w FROM `change_72fde907fdc6`) AS l
  LEFT ANTI JOIN (SELECT `c` FROM (SELECT `c`, `d` FROM `right_ae9c33815141`)) AS r
    ON ((`a` = `c`) OR ((`a` = `c`) IS NULL)))
UNION ALL
SELECT `a`, `b`, 1 AS _w FROM (SELECT `a`, `b` FROM (SELECT * FROM (SELECT * FROM (SELECT `a`, `b`, `_was`, `_is` FROM `status_ae9c33815141`) WHERE (NOT (`_was` = `_is`))) WHERE `_was`))
UNION ALL
SELECT `a`, `b`, _w FROM (SELECT `a`, `b`, -1 AS _w FROM (SELECT `a`, `b` FROM (SELECT * FROM (SELECT * FROM (SELECT `a`, `b`, `_was`, `_is` FROM `status_ae9c33815141`) WHERE (NOT (`_was` = `_is`))) WHERE `_is`)));
