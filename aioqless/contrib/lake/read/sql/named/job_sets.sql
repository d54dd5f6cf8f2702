-- Runs of job sets: how many completed, failed and were retried, and the seconds that they took.
SELECT
    namespace, job_set,
    count(*) FILTER (how = 'complete') AS completed,
    count(*) FILTER (how = 'fail') AS failed,
    count(*) FILTER (how = 'retried') AS retried,
    sum(run) AS seconds,
    min(popped) AS began, max(ended) AS ended
FROM runs
WHERE job_set IS NOT NULL
GROUP BY ALL
ORDER BY began
