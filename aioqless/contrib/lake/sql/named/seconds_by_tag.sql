-- The seconds that runs with a tag took on a day: multiply by your price. A job with two tags counts
-- for both.
SELECT
    namespace, date, tag,
    sum(runs)::BIGINT AS runs,
    coalesce(sum(run.count * run.mean), 0) + coalesce(sum(spent.count * spent.mean), 0) AS seconds
FROM tags
GROUP BY ALL
ORDER BY ALL
