-- The backlog of each queue by hour, of the snapshots that `lake archive --every` takes.
SELECT
    namespace, date_trunc('hour', taken) AS hour, queue,
    max(waiting) AS most_waiting,
    max(lag) AS longest_lag,
    max(scheduled) AS most_scheduled,
    avg(running) AS running,
    min(workers) AS least_workers,
    count(*) AS minutes
FROM backlog
GROUP BY ALL
ORDER BY ALL
