-- The critical path of each job that had to wait for others: the dependency that ended last, the
-- one that this had waited for, and so on, at most 90 jobs. The first one comes first.
WITH RECURSIVE
ran AS MATERIALIZED (
    SELECT
        namespace, jid, klass, queue, state, put, popped, ended, wait, run, depends, date
    FROM jobs
    WHERE popped IS NOT NULL
),
decisive AS MATERIALIZED (
    SELECT
        job.namespace, job.jid,
        arg_max(earlier.jid, {'ended': earlier.ended, 'jid': earlier.jid}) AS earlier
    FROM (SELECT *, unnest(depends) AS dependency FROM ran) AS job
    JOIN ran AS earlier
        ON earlier.namespace = job.namespace AND earlier.jid = job.dependency
    WHERE earlier.ended <= job.popped AND earlier.ended < job.ended
    GROUP BY job.namespace, job.jid
),
reached AS (
    SELECT namespace, jid, jid AS step, 1 AS number FROM decisive
    UNION ALL
    SELECT reached.namespace, reached.jid, decisive.earlier, number + 1
    FROM reached
    JOIN decisive ON decisive.namespace = reached.namespace AND decisive.jid = reached.step
    WHERE number < 90
),
chains AS (
    SELECT
        reached.namespace, reached.jid,
        list(
            {
                'jid': step.jid, 'klass': step.klass, 'queue': step.queue, 'put': step.put,
                'popped': step.popped, 'ended': step.ended, 'wait': step.wait, 'run': step.run
            }
            ORDER BY number DESC
        ) AS steps,
        sum(step.run) AS running
    FROM reached
    JOIN ran AS step ON step.namespace = reached.namespace AND step.jid = reached.step
    GROUP BY reached.namespace, reached.jid
)
SELECT
    jid, klass, queue, state, began, ended,
    seconds_between(began, ended) AS seconds,
    running,
    greatest(0, seconds_between(began, ended) - running) AS waiting,
    len(steps) AS depth,
    steps, namespace, date
FROM (
    SELECT ran.*, steps, running, coalesce(steps[1].put, steps[1].popped) AS began
    FROM chains JOIN ran USING (namespace, jid)
)
