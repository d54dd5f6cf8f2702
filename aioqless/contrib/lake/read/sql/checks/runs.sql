-- There is a row for each run of the events.
SELECT date, expected, found
FROM (SELECT date, sum(len(runs))::BIGINT AS expected FROM events GROUP BY date)
FULL JOIN (SELECT date, count(*) AS found FROM runs GROUP BY date) USING (date)
WHERE coalesce(expected, 0) <> coalesce(found, 0)
