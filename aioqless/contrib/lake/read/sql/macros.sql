-- Functions that the other texts call. Numbers of seconds, and times in microseconds.
CREATE OR REPLACE MACRO seconds_between(start, stop) AS
    if(stop < start, 0, epoch_us(stop) - epoch_us(start)) / 1e6;

-- The power of 2^(1/64) that is next below a number; bins are 1.1 % wide.
CREATE OR REPLACE MACRO log_bin(number) AS
    floor(log2(if(number < 1e-6, 1e-6, number)) * 64)::BIGINT;

-- The middle of such a bin, at most 0.6 % off any number in it.
CREATE OR REPLACE MACRO middle_of(bin) AS pow(2, (bin + 0.5) / 64);

-- A percentile of several rows, in seconds: `percentile(list(run.log_bins), 0.95)`. Null of none.
-- The list begins with the rank, as a negative number: DuckDB mixes up the groups of a query if
-- `list_reduce` has an initial value and its lambda captures a variable.
CREATE OR REPLACE MACRO percentile(bins, share) AS middle_of(list_transform(
    [list_sort(flatten(list_transform(bins, lambda each: map_entries(each))))],
    lambda counts: list_reduce(
        list_concat(
            [{
                'key': NULL::BIGINT,
                'value': -greatest(
                    1, list_sum(list_transform(counts, lambda each: each.value)) * share
                )::DOUBLE
            }],
            counts
        ),
        lambda last, each: if(
            last.value >= 0, last, {'key': each.key, 'value': last.value + each.value}
        )
    ).key
)[1]);

-- The bin of qless' histogram: s0 to s59, m1 to m59, h1 to h23, then days.
CREATE OR REPLACE MACRO qless_bin(number) AS CASE
    WHEN number < 60 THEN 's' || floor(number)::BIGINT
    WHEN number < 3600 THEN 'm' || floor(number / 60)::BIGINT
    WHEN number < 86400 THEN 'h' || floor(number / 3600)::BIGINT
    ELSE 'd' || floor(number / 86400)::BIGINT
END;

-- Describes the numbers of a group; null if it has none.
CREATE OR REPLACE MACRO cell(number) AS CASE WHEN count(number) > 0 THEN {
    'count': count(number),
    'mean': avg(number),
    'variance': coalesce(var_samp(number), 0),
    'least': min(number),
    'most': max(number),
    'p50': quantile_disc(number, 0.5),
    'p90': quantile_disc(number, 0.9),
    'p95': quantile_disc(number, 0.95),
    'p99': quantile_disc(number, 0.99),
    'histogram': CAST(histogram(qless_bin(number)) AS MAP(VARCHAR, BIGINT)),
    'log_bins': CAST(histogram(log_bin(number)) AS MAP(BIGINT, BIGINT))
} END;
