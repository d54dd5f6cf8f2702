-- What runs with a tag cost on a day: their seconds times the price of one (`--set price=0.00002`,
-- else 1). A job with two tags counts for both.
SELECT
    namespace, date, tag,
    sum(runs)::BIGINT AS runs,
    coalesce(sum(run.count * run.mean), 0) + coalesce(sum(spent.count * spent.mean), 0) AS seconds,
    seconds * coalesce(getvariable('price'), 1) AS cost
FROM tags
GROUP BY ALL
ORDER BY ALL
