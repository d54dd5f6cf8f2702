-- Runs that began and ended in all minutes are those of the events.
SELECT date, name, coalesce(expected, 0) AS expected, coalesce(found, 0)::BIGINT AS found
FROM (
    SELECT date, 'popped' AS name, count(r.popped) AS expected
    FROM (SELECT date, unnest(runs) AS r FROM events) GROUP BY date
    UNION ALL
    SELECT date, 'ended', count(r.ended)
    FROM (SELECT date, unnest(runs) AS r FROM events) GROUP BY date
)
FULL JOIN (
    SELECT date, 'popped' AS name, sum(popped) AS found FROM throughput GROUP BY date
    UNION ALL
    SELECT date, 'ended', sum(completed + failed + retried) FROM throughput GROUP BY date
) USING (date, name), archived
WHERE coalesce(expected, 0) <> coalesce(found, 0)
    AND NOT (erased > 0 AND coalesce(found, 0) > coalesce(expected, 0))
