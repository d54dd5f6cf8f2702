-- Adds up rows of groups: counts, and one cell of all numbers for each kind of time. Percentiles
-- come from the logarithmic bins.
WITH
chosen AS (SELECT ${key} AS key, * FROM ${table} WHERE ${where}),
counts AS (
    SELECT
        key,
        ${sums}
    FROM chosen GROUP BY key
),
cells AS (
    SELECT key, kind, unnest(cell)
    FROM (
        SELECT key, unnest(['wait', 'run', 'spent']) AS kind, unnest([wait, run, spent]) AS cell
        FROM chosen
    )
    WHERE cell IS NOT NULL
),
totals AS (
    SELECT
        key, kind,
        sum(count)::BIGINT AS count,
        sum(mean * count) / sum(count) AS mean,
        min(least) AS least,
        max(most) AS most
    FROM cells GROUP BY key, kind
),
variances AS (
    SELECT
        key, kind,
        sum((cells.count - 1) * variance + cells.count * pow(cells.mean - totals.mean, 2))
            / greatest(sum(cells.count) - 1, 1) AS variance
    FROM cells JOIN totals USING (key, kind) GROUP BY key, kind
),
bins AS (
    SELECT key, kind, bin, sum(number)::BIGINT AS number
    FROM (
        SELECT
            key, kind,
            unnest(map_keys(log_bins)) AS bin,
            unnest(map_values(log_bins)) AS number
        FROM cells
    )
    GROUP BY key, kind, bin
),
percentiles AS (
    SELECT
        key, kind, log_bins,
        percentile([log_bins], 0.5) AS p50, percentile([log_bins], 0.9) AS p90,
        percentile([log_bins], 0.95) AS p95, percentile([log_bins], 0.99) AS p99
    FROM (
        SELECT key, kind, map_from_entries(list({'bin': bin, 'number': number})) AS log_bins
        FROM bins GROUP BY key, kind
    )
),
described AS (
    SELECT
        key,
        map_from_entries(list({'kind': kind, 'cell': {
            'count': count, 'mean': mean, 'variance': variance, 'least': least, 'most': most,
            'p50': greatest(least, least(most, p50)), 'p90': greatest(least, least(most, p90)),
            'p95': greatest(least, least(most, p95)), 'p99': greatest(least, least(most, p99)),
            'log_bins': log_bins
        }})) AS cells
    FROM totals JOIN variances USING (key, kind) JOIN percentiles USING (key, kind)
    GROUP BY key
)
SELECT counts.*, cells FROM counts LEFT JOIN described USING (key)
