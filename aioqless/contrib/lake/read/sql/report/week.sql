-- Runs that ended in each hour of the week.
SELECT
    ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'][number // 24 + 1] AS day,
    number % 24 || ':00' AS hour,
    coalesce(ended, 0) AS runs
FROM (SELECT unnest(range(168)) AS number)
LEFT JOIN (
    SELECT
        (epoch_us(start) // 1000000 - 345600) // 3600 % 168 AS number,
        sum(completed + failed)::BIGINT AS ended
    FROM minutes GROUP BY 1
) USING (number)
ORDER BY number
