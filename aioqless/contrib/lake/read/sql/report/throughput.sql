-- One row for each queue and period in which a job waited, ran, came or ended: what happened in it,
-- and the mean number of waiting and running jobs. Of a wait or run of more than 31 days, the last
-- 31 count.
WITH
spans AS (
    SELECT
        namespace, date, queue, level, stop,
        greatest(start, (stop // 86400000000 - 30) * 86400000000) AS start
    FROM (
        SELECT namespace, date, queue, 'waiting' AS level,
            epoch_us(put) AS start, epoch_us(popped) AS stop
        FROM runs
        UNION ALL
        SELECT namespace, date, queue, 'running', epoch_us(popped), epoch_us(ended) FROM runs
    )
    WHERE start < stop
),
slots AS (
    SELECT *, start // ${micros} AS first, stop // ${micros} AS last FROM spans
),
-- Periods that spans cover as a whole: the number of spans between two of their ends.
steps AS (
    SELECT namespace, date, queue, level, slot, sum(step) AS step
    FROM (
        SELECT namespace, date, queue, level, first + 1 AS slot, 1 AS step
        FROM slots WHERE first + 1 < last
        UNION ALL
        SELECT namespace, date, queue, level, last, -1 FROM slots WHERE first + 1 < last
    )
    GROUP BY ALL
),
depths AS (
    SELECT
        namespace, date, queue, level, slot,
        sum(step) OVER ends AS depth,
        lead(slot) OVER ends AS next
    FROM steps
    WINDOW ends AS (PARTITION BY namespace, date, queue, level ORDER BY slot)
),
parts AS (
    SELECT namespace, date, queue, level AS what, first AS slot,
        least(stop, (first + 1) * ${micros}) - start AS number
    FROM slots
    UNION ALL
    SELECT namespace, date, queue, level, last, stop - last * ${micros}
    FROM slots WHERE first < last
    UNION ALL
    SELECT namespace, date, queue, level, unnest(range(slot, next)), (depth * ${micros})::BIGINT
    FROM depths WHERE depth > 0
    UNION ALL
    SELECT namespace, date, queue, 'put', epoch_us(put) // ${micros}, 1
    FROM runs WHERE attempt = 1 AND put IS NOT NULL
    UNION ALL
    SELECT namespace, date, queue, 'popped', epoch_us(popped) // ${micros}, 1
    FROM runs WHERE popped IS NOT NULL
    UNION ALL
    SELECT
        namespace, date, queue,
        CASE WHEN how IN ('complete', 'advance') THEN 'completed'
            WHEN how = 'fail' THEN 'failed' ELSE 'retried' END,
        epoch_us(ended) // ${micros}, 1
    FROM runs WHERE ended IS NOT NULL
)
SELECT
    queue,
    make_timestamptz(slot * ${micros}) AS start,
    ${micros} // 1000000 AS seconds,
    coalesce(sum(number) FILTER (what = 'put'), 0)::BIGINT AS put,
    coalesce(sum(number) FILTER (what = 'popped'), 0)::BIGINT AS popped,
    coalesce(sum(number) FILTER (what = 'completed'), 0)::BIGINT AS completed,
    coalesce(sum(number) FILTER (what = 'failed'), 0)::BIGINT AS failed,
    coalesce(sum(number) FILTER (what = 'retried'), 0)::BIGINT AS retried,
    coalesce(sum(number) FILTER (what = 'waiting'), 0) / ${micros} AS waiting,
    coalesce(sum(number) FILTER (what = 'running'), 0) / ${micros} AS running,
    namespace, date
FROM parts
GROUP BY namespace, date, queue, slot
