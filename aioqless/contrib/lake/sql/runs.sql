-- One row for each run of the events; attempts count from 1 within a stage.
SELECT
    id, attempt, jid, klass, queue, tags, priority, job_set, tenant,
    r.worker, r.fence, r.put, r.popped, r.ended,
    run_dues[attempt] AS due, run_versions[attempt] AS version,
    seconds_between(r.put, r.popped) AS wait,
    seconds_between(r.popped, r.ended) AS run,
    r.how, r.failure_group, r.message,
    coalesce(swept, false) AS swept,
    namespace, date
FROM (
    SELECT
        id, jid, klass, queue, tags, priority, job_set, tenant, swept, namespace, date,
        run_dues, run_versions,
        generate_subscripts(runs, 1) AS attempt,
        unnest(runs) AS r
    FROM events
)
