-- The mean number of jobs that waited and ran in each slot; the last slot has an end.
SELECT shown * 1000 AS moment, text_of(moment) AS time, name, coalesce(jobs, 0) AS jobs
FROM (
    SELECT moment, moment AS shown FROM slots
    UNION ALL
    SELECT max(moment), max(moment) + getvariable('width') FROM slots
)
CROSS JOIN (SELECT unnest(['waiting', 'running']) AS name)
LEFT JOIN (
    SELECT
        slot(start) AS moment,
        unnest(['waiting', 'running']) AS name,
        unnest([sum(waiting * seconds), sum(running * seconds)]) / getvariable('width') AS jobs
    FROM minutes GROUP BY 1
) USING (moment, name)
WHERE moment IS NOT NULL
ORDER BY shown, name
