-- Broken promises by day, queue and class: runs that began more than 60 seconds (`--set seconds=10`)
-- after they were queued or, with a delay, due; and jobs that expired before they began.
SELECT
    namespace, date, queue, klass,
    count(*) AS runs,
    count(*) FILTER (seconds > coalesce(getvariable('seconds'), 60)) AS late,
    count(*) FILTER (is_expired) AS expired,
    max(seconds) AS longest
FROM (
    SELECT
        namespace, date, queue, klass,
        seconds_between(coalesce(due, put), popped) AS seconds,
        failure_group = queue || '-expired' AS is_expired
    FROM runs
    WHERE put IS NOT NULL AND popped IS NOT NULL
)
GROUP BY ALL
HAVING late + expired > 0
ORDER BY ALL
