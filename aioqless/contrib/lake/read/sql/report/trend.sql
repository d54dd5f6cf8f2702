-- Failures in each slot, of an hour at least.
SELECT *, runs_below + runs AS top
FROM (
    SELECT
        moment * 1000 AS moment, moment * 1000 + 900 * greatest(getvariable('width'), 3600) AS until,
        text_of(moment) AS time, name, color, runs,
        sum(runs) OVER (PARTITION BY moment ORDER BY number) - runs AS runs_below
    FROM (
        SELECT
            slot_of(
                epoch(date)::BIGINT + 3600 * hour, greatest(getvariable('width'), 3600)
            ) AS moment,
            if(number <= 5, name, 'others') AS name, color, min(number) AS number,
            sum(number_of_hour)::BIGINT AS runs
        FROM (
            SELECT
                date, name, color, number, unnest(range(24)) AS hour,
                unnest(by_hour) AS number_of_hour
            FROM failed
        )
        WHERE number_of_hour > 0
        GROUP BY ALL
    )
)
ORDER BY moment, runs_below
