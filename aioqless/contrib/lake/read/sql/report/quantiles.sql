-- Percentiles of the times of each slot; null if it has none.
SELECT
    (moment + getvariable('width') / 2) * 1000 AS moment, text_of(moment) AS time, jobs,
    ranks[1] AS p50, ranks[2] AS p90, ranks[3] AS p99
FROM slots
LEFT JOIN (
    SELECT
        slot(${moment}) AS moment, count(*) AS jobs,
        quantile_disc(greatest(${kind}, 1e-5), [0.5, 0.9, 0.99]) AS ranks
    FROM runs
    WHERE ${kind} IS NOT NULL AND is_inside(${moment}) AND is_chosen(queue)
        AND ('${kind}' = 'wait' OR how IN ('complete', 'advance'))
    GROUP BY 1
) USING (moment)
ORDER BY moment
