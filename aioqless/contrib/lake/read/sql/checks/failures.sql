-- Failures with a group are those of the events.
SELECT date, name, coalesce(expected, 0) AS expected, coalesce(found, 0)::BIGINT AS found
FROM (
    SELECT date, 'failed' AS name, count(*) AS expected
    FROM events WHERE what = 'fail' AND failure_group IS NOT NULL GROUP BY date
    UNION ALL
    SELECT date, 'retried', count(*)
    FROM (SELECT date, unnest(runs) AS r FROM events)
    WHERE r.how <> 'fail' AND r.failure_group IS NOT NULL GROUP BY date
)
FULL JOIN (
    UNPIVOT (
        SELECT date, nullif(sum(count), 0) AS failed, nullif(sum(retried), 0) AS retried
        FROM failures GROUP BY date
    )
    ON COLUMNS(* EXCLUDE date) INTO NAME name VALUE found
) USING (date, name), archived
WHERE coalesce(expected, 0) <> coalesce(found, 0)
    AND NOT (erased > 0 AND coalesce(found, 0) > coalesce(expected, 0))
