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
ranks AS (
    SELECT
        key, kind, bin, number,
        sum(number) OVER (PARTITION BY key, kind ORDER BY bin) AS rank,
        sum(number) OVER (PARTITION BY key, kind) AS count
    FROM bins
),
percentiles AS (
    SELECT
        key, kind,
        middle_of(min(bin) FILTER (rank >= 0.5 * count)) AS p50,
        middle_of(min(bin) FILTER (rank >= 0.9 * count)) AS p90,
        middle_of(min(bin) FILTER (rank >= 0.95 * count)) AS p95,
        middle_of(min(bin) FILTER (rank >= 0.99 * count)) AS p99,
        map_from_entries(list({'bin': bin, 'number': number} ORDER BY bin)) AS log_bins
    FROM ranks GROUP BY key, kind
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
