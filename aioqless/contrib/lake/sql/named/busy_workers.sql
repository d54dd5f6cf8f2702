-- The seconds that each worker ran jobs on a day, and their share of the time between its first and
-- last job: above 100 % if it runs several at once.
SELECT
    namespace, date, worker,
    sum(run) AS seconds,
    100 * sum(run) / greatest(1, seconds_between(min(popped), max(ended))) AS percent
FROM runs
WHERE worker IS NOT NULL
GROUP BY ALL
ORDER BY ALL
