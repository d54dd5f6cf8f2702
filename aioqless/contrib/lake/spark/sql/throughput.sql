-- One row for each queue and period in which a job waited, ran, came or ended: what happened in it,
-- and the mean number of waiting and running jobs. Of a wait or run of more than 31 days, the last
-- 31 count.
WITH
spans AS (
    SELECT
        namespace, date, queue, level, stop,
        greatest(start, (stop div 86400000000 - 30) * 86400000000) AS start
    FROM (
        SELECT
            namespace, date, queue,
            stack(2,
                'waiting', unix_micros(put), unix_micros(popped),
                'running', unix_micros(popped), unix_micros(ended)
            ) AS (level, start, stop)
        FROM {runs}
    )
    WHERE start < stop
),
slots AS (SELECT *, start div ${micros} AS first, stop div ${micros} AS last FROM spans),
-- Periods that spans cover as a whole: the number of spans between two of their ends.
steps AS (
    SELECT namespace, date, queue, level, slot, sum(step) AS step
    FROM (
        SELECT
            namespace, date, queue, level,
            stack(2, first + 1, 1L, last, -1L) AS (slot, step)
        FROM slots
        WHERE first + 1 < last
    )
    GROUP BY namespace, date, queue, level, slot
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
    SELECT namespace, date, queue, what, slot, number
    FROM (
        SELECT
            namespace, date, queue,
            stack(2,
                level, first, least(stop, (first + 1) * ${micros}) - start,
                level, last, if(first < last, stop - last * ${micros}, NULL)
            ) AS (what, slot, number)
        FROM slots
    )
    WHERE number IS NOT NULL
    UNION ALL
    SELECT
        namespace, date, queue, level, explode(sequence(slot, next - 1)), depth * ${micros}
    FROM depths
    WHERE depth > 0
    UNION ALL
    SELECT namespace, date, queue, what, slot, 1L
    FROM (
        SELECT
            namespace, date, queue,
            stack(3,
                'put', if(attempt = 1, unix_micros(put) div ${micros}, NULL),
                'popped', unix_micros(popped) div ${micros},
                CASE
                    WHEN how IN ('complete', 'advance') THEN 'completed'
                    WHEN how = 'fail' THEN 'failed'
                    ELSE 'retried'
                END, unix_micros(ended) div ${micros}
            ) AS (what, slot)
        FROM {runs}
    )
    WHERE slot IS NOT NULL
)
SELECT
    queue,
    timestamp_micros(slot * ${micros}) AS start,
    ${micros} div 1000000 AS seconds,
    coalesce(sum(number) FILTER (WHERE what = 'put'), 0L) AS put,
    coalesce(sum(number) FILTER (WHERE what = 'popped'), 0L) AS popped,
    coalesce(sum(number) FILTER (WHERE what = 'completed'), 0L) AS completed,
    coalesce(sum(number) FILTER (WHERE what = 'failed'), 0L) AS failed,
    coalesce(sum(number) FILTER (WHERE what = 'retried'), 0L) AS retried,
    coalesce(sum(number) FILTER (WHERE what = 'waiting'), 0L) / ${micros}D AS waiting,
    coalesce(sum(number) FILTER (WHERE what = 'running'), 0L) / ${micros}D AS running,
    namespace, date
FROM parts
GROUP BY namespace, date, queue, slot
