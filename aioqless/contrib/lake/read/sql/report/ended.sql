-- Runs that ended in each slot.
SELECT *, runs_below + runs AS top
FROM (
    SELECT
        moment * 1000 AS moment, moment * 1000 + 900 * getvariable('width') AS until, text_of(moment) AS time,
        name, runs, sum(runs) OVER (PARTITION BY moment ORDER BY number) - runs AS runs_below
    FROM (
        SELECT
            slot(start) AS moment,
            unnest(['completed', 'retried', 'failed']) AS name,
            unnest([1, 2, 3]) AS number,
            unnest([sum(completed), sum(retried), sum(failed)])::BIGINT AS runs
        FROM minutes GROUP BY 1
    )
)
WHERE runs > 0
ORDER BY moment, runs_below
