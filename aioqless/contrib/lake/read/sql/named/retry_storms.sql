-- The minutes in which most runs of a queue ended with a retry.
SELECT
    namespace, queue, start,
    sum(retried)::BIGINT AS retried,
    sum(completed)::BIGINT AS completed
FROM throughput
GROUP BY ALL
HAVING sum(retried) > 0
ORDER BY retried DESC, start
LIMIT 100
