-- The busy part of the workers' slots by hour and version, of the snapshots that `lake archive
-- --every` takes; `minutes` without a snapshot are unknown.
SELECT
    namespace, date_trunc('hour', taken) AS hour, version,
    count(DISTINCT worker) AS workers,
    sum(slots) / count(DISTINCT date_trunc('minute', taken)) AS slots,
    100 * sum(busy) / sum(slots) AS percent,
    max(memory) AS most_memory,
    count(DISTINCT date_trunc('minute', taken)) AS minutes
FROM worker_snapshots
WHERE slots > 0
GROUP BY ALL
ORDER BY ALL
