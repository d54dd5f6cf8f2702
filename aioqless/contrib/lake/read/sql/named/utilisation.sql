-- The busy part of the workers' slots by hour (`--set minutes=5`) and version, of the snapshots that
-- `lake archive --every` takes; `minutes` without a snapshot are unknown.
SELECT
    namespace, version,
    time_bucket(to_minutes(coalesce(getvariable('minutes'), 60)::BIGINT), taken) AS start,
    count(DISTINCT worker) AS workers,
    sum(slots) / count(DISTINCT date_trunc('minute', taken)) AS slots,
    100 * sum(busy) / sum(slots) AS percent,
    max(memory) AS most_memory,
    count(DISTINCT date_trunc('minute', taken)) AS minutes
FROM worker_snapshots
WHERE slots > 0
GROUP BY ALL
ORDER BY ALL
