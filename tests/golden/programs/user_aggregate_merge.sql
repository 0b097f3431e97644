-- state build: state_f6dd634c5ef3
SELECT `k` AS `k`, NAMED_STRUCT('v', own(`v`)) AS `m$v`, `slackwater_rows_own`(1) AS _n
FROM (SELECT c0 AS `k`, c1 AS `v` FROM `t@new`)
GROUP BY `k`;

-- full result
SELECT `k`, `m$v`.v AS `m` FROM (SELECT `k`, `slackwater_merge_own`(COLLECT_LIST(`m$v`)) AS `m$v`, COALESCE(SUM(_n), 0L) AS _n
FROM (SELECT `k`, `m$v`, `_n` FROM `state_f6dd634c5ef3`)
GROUP BY `k`
HAVING SUM(_n) > 0);

-- shared delta: change_of_f6dd634c5ef3
SELECT c0 AS `k`, c1 AS `v`, _w FROM `t@delta`;

-- shared delta: delta_f6dd634c5ef3
SELECT `k` AS `k`, NAMED_STRUCT('v', own(`v`)) AS `m$v`, `slackwater_rows_own`(1) AS _n, 0L AS _d
FROM (SELECT `k`, `v`, _w FROM `change_of_f6dd634c5ef3`) WHERE _w > 0
GROUP BY `k`
UNION ALL
SELECT `k` AS `k`, CAST(NULL AS struct<v:double>) AS `m$v`, COALESCE(SUM(CAST(_w AS BIGINT)), 0L) AS _n, COUNT(1) AS _d
FROM (SELECT `k`, `v`, _w FROM `change_of_f6dd634c5ef3`) WHERE _w < 0
GROUP BY `k`;

-- shared delta: redo_f6dd634c5ef3
SELECT `k` AS `k`, NAMED_STRUCT('v', own(`v`)) AS `m$v`, `slackwater_rows_own`(1) AS _n
FROM (SELECT /*+ BROADCAST(k) */ * FROM (SELECT c0 AS `k`, c1 AS `v` FROM `t@new`) AS c
  LEFT SEMI JOIN (SELECT `k` AS _k0 FROM (SELECT * FROM (SELECT `k`, `m$v`, `_n`, `_d` FROM `delta_f6dd634c5ef3`) WHERE (`_d` > 0))) AS k
    ON `k` <=> _k0)
GROUP BY `k`;

-- state replaced: state_f6dd634c5ef3_new
SELECT `k`, `m$v`, `_n` FROM (SELECT /*+ BROADCAST(k) */ * FROM (SELECT `k`, `m$v`, `_n` FROM `state_f6dd634c5ef3`) AS c
  LEFT ANTI JOIN (SELECT `k` AS _k0 FROM (SELECT * FROM (SELECT `k`, `m$v`, `_n`, `_d` FROM `delta_f6dd634c5ef3`) WHERE (`_d` > 0))) AS k
    ON `k` <=> _k0)
UNION ALL
SELECT `k`, `m$v`, `_n` FROM (SELECT /*+ BROADCAST(k) */ * FROM (SELECT `k`, `m$v`, `_n` FROM (SELECT `k`, `m$v`, `_n`, `_d` FROM `delta_f6dd634c5ef3`)) AS c
  LEFT ANTI JOIN (SELECT `k` AS _k0 FROM (SELECT * FROM (SELECT `k`, `m$v`, `_n`, `_d` FROM `delta_f6dd634c5ef3`) WHERE (`_d` > 0))) AS k
    ON `k` <=> _k0)
UNION ALL
SELECT `k`, `m$v`, `_n` FROM (SELECT `k`, `m$v`, `_n` FROM `redo_f6dd634c5ef3`);

-- result delta
SELECT `k`, `m`, CAST(SIGN(_s) AS INT) AS _w FROM (SELECT `k`, ANY_VALUE(`m`) AS `m`, SUM(_w) AS _s FROM (SELECT `k`, `m`, 1 AS _w FROM (SELECT `k`, `m$v`.v AS `m` FROM (SELECT `k`, `slackwater_merge_own`(COLLECT_LIST(`m$v`)) AS `m$v`, COALESCE(SUM(_n), 0L) AS _n
      FROM (SELECT `k`, `m$v`, `_n` FROM (SELECT /*+ BROADCAST(k) */ * FROM (SELECT `k`, `m$v`, `_n` FROM `state_f6dd634c5ef3`) AS c
          LEFT ANTI JOIN (SELECT `k` AS _k0 FROM (SELECT * FROM (SELECT `k`, `m$v`, `_n`, `_d` FROM `delta_f6dd634c5ef3`) WHERE (`_d` > 0))) AS k
            ON `k` <=> _k0)
        UNION ALL
        SELECT `k`, `m$v`, `_n` FROM (SELECT /*+ BROADCAST(k) */ * FROM (SELECT `k`, `m$v`, `_n` FROM (SELECT `k`, `m$v`, `_n`, `_d` FROM `delta_f6dd634c5ef3`)) AS c
          LEFT ANTI JOIN (SELECT `k` AS _k0 FROM (SELECT * FROM (SELECT `k`, `m$v`, `_n`, `_d` FROM `delta_f6dd634c5ef3`) WHERE (`_d` > 0))) AS k
            ON `k` <=> _k0)
        UNION ALL
        SELECT `k`, `m$v`, `_n` FROM (SELECT `k`, `m$v`, `_n` FROM `redo_f6dd634c5ef3`))
      GROUP BY `k`
      HAVING SUM(_n) > 0))
    UNION ALL
    SELECT `k`, `m`, _w FROM (SELECT `k`, `m`, -1 AS _w FROM (SELECT `k`, `m` FROM (SELECT `k`, `m` FROM `sw@result`)))) GROUP BY `k`, CAST(`m` AS STRING) HAVING SUM(_w) <> 0) AS g LATERAL VIEW EXPLODE(SEQUENCE(1L, ABS(_s))) x AS _i;
