-- The number and the sum of times by class are those of the runs.
WITH
expected AS (
    UNPIVOT (
        SELECT
            date, count(wait)::DOUBLE AS waits, sum(wait) AS waited,
            count(run)::DOUBLE AS runs, sum(run) AS ran
        FROM (
            SELECT
                date, seconds_between(r.put, r.popped) AS wait,
                seconds_between(r.popped, r.ended) AS run
            FROM (SELECT date, unnest(runs) AS r FROM events)
        )
        GROUP BY date
    )
    ON COLUMNS(* EXCLUDE date) INTO NAME name VALUE expected
),
found AS (
    UNPIVOT (
        SELECT
            date, sum(wait.count)::DOUBLE AS waits, sum(wait.count * wait.mean) AS waited,
            (coalesce(sum(run.count), 0) + coalesce(sum(spent.count), 0))::DOUBLE AS runs,
            coalesce(sum(run.count * run.mean), 0) + coalesce(sum(spent.count * spent.mean), 0)
                AS ran
        FROM klasses GROUP BY date
    )
    ON COLUMNS(* EXCLUDE date) INTO NAME name VALUE found
)
SELECT date, name, coalesce(expected, 0) AS expected, coalesce(found, 0) AS found
FROM expected FULL JOIN found USING (date, name), archived
WHERE abs(coalesce(expected, 0) - coalesce(found, 0)) > 1e-6 * (1 + coalesce(expected, 0))
    AND NOT (erased > 0 AND coalesce(found, 0) > coalesce(expected, 0))
