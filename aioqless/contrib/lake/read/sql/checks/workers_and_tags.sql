-- Runs by worker and by tag are those of the events.
SELECT date, name, coalesce(expected, 0) AS expected, coalesce(found, 0)::BIGINT AS found
FROM (
    SELECT date, 'by worker' AS name, count(r.worker) AS expected
    FROM (SELECT date, unnest(runs) AS r FROM events) GROUP BY date
    UNION ALL
    SELECT date, 'by tag', sum(len(runs) * len(list_distinct(tags)))::BIGINT
    FROM events GROUP BY date
)
FULL JOIN (
    SELECT date, 'by worker' AS name, sum(runs) AS found FROM workers GROUP BY date
    UNION ALL
    SELECT date, 'by tag', sum(runs) FROM tags GROUP BY date
) USING (date, name), archived
WHERE coalesce(expected, 0) <> coalesce(found, 0)
    AND NOT (erased > 0 AND coalesce(found, 0) > coalesce(expected, 0))
