-- The backlog of each queue by hour (`--set minutes=5`), of the snapshots that `lake archive --every`
-- takes. An hour has 60 `minutes`; those that are missing are unknown. Without a worker,
-- `least_workers` is 0.
SELECT
    namespace, queue,
    time_bucket(to_minutes(coalesce(getvariable('minutes'), 60)::BIGINT), taken) AS start,
    max(waiting) AS most_waiting,
    max(lag) AS longest_lag,
    max(scheduled) AS most_scheduled,
    avg(running) AS running,
    min(workers) AS least_workers,
    count(*) AS minutes
FROM backlog
GROUP BY ALL
ORDER BY ALL
