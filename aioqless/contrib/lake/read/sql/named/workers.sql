-- The workers: when each was first and last there, and how busy it was.
SELECT
    namespace, worker, version, started,
    max(taken) AS last_seen,
    max(slots) AS slots,
    100 * avg(busy / slots) AS percent,
    max(memory) AS most_memory
FROM worker_snapshots
GROUP BY namespace, worker, version, started
ORDER BY namespace, started, worker
