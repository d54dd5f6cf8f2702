-- Sums by class are those of the events. Sums of erased jobs may have stayed.
WITH
expected AS (
    SELECT date, what AS name, count(*) AS expected FROM events GROUP BY ALL
    UNION ALL
    SELECT date, 'run', sum(len(runs))::BIGINT FROM events GROUP BY ALL
    UNION ALL
    SELECT date, r.how, count(*)
    FROM (SELECT date, unnest(runs) AS r FROM events)
    WHERE r.how IN ('retried', 'released', 'timed-out', 'lost')
    GROUP BY ALL
),
found AS (
    UNPIVOT (
        SELECT
            date, sum(completed) AS complete, sum(advanced) AS advance, sum(failed) AS fail,
            sum(cancelled) AS cancel, sum(moved) AS move, sum(runs) AS run,
            sum(retried) AS retried, sum(released) AS released,
            sum(timed_out) AS "timed-out", sum(lost) AS lost
        FROM klasses GROUP BY date
    )
    ON COLUMNS(* EXCLUDE date) INTO NAME name VALUE found
)
SELECT date, name, coalesce(expected, 0) AS expected, coalesce(found, 0)::BIGINT AS found
FROM expected FULL JOIN found USING (date, name), archived
WHERE coalesce(expected, 0) <> coalesce(found, 0)
    AND NOT (erased > 0 AND coalesce(found, 0) > coalesce(expected, 0))
