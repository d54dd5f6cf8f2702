-- Runs that waited for more than a minute, by day, queue and class.
SELECT
    namespace, date, queue, klass,
    count(*) FILTER (wait > 60) AS late,
    100 * count(*) FILTER (wait > 60) / count(*) AS percent
FROM runs
WHERE wait IS NOT NULL
GROUP BY ALL
HAVING late > 0
ORDER BY ALL
