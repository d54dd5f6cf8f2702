-- One row for each run of the events; attempts count from 1 within a stage.
SELECT
    id, CAST(pos + 1 AS BIGINT) AS attempt, jid, klass, queue, tags, priority, job_set, tenant,
    r.worker, r.fence, r.put, r.popped, r.ended,
    get(run_dues, pos) AS due, get(run_versions, pos) AS version,
    CASE WHEN r.popped < r.put THEN 0D
        ELSE (unix_micros(r.popped) - unix_micros(r.put)) / 1e6D END AS wait,
    CASE WHEN r.ended < r.popped THEN 0D
        ELSE (unix_micros(r.ended) - unix_micros(r.popped)) / 1e6D END AS run,
    r.how, r.failure_group, r.message,
    coalesce(swept, false) AS swept,
    namespace, date
FROM {events} LATERAL VIEW posexplode(runs) AS pos, r
