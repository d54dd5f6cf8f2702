-- The distribution of times: eight bins for a power of ten.
SELECT 10 ** (step / 8) AS low, 10 ** ((step + 1) / 8) AS high, sum(number)::BIGINT AS jobs
FROM (
    SELECT
        floor(log10(greatest(middle_of(unnest(map_keys(${kind}.log_bins))), 1e-5)) * 8) AS step,
        unnest(map_values(${kind}.log_bins)) AS number
    FROM days WHERE ${kind} IS NOT NULL
)
GROUP BY step
ORDER BY step
