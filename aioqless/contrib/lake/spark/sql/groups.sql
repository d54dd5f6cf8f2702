-- What `cells.py` makes the tables of groups of: for each group how often its stages and runs ended
-- in each way, and the times of its runs by bins. A bin of `bin` is between two powers of 2^(1/64),
-- one of `q` is that of qless' histogram. Sums are of the distances from the middle of a bin, so
-- that the variance of close numbers far from 0 keeps its digits.
WITH
times AS (
    SELECT
        namespace, date, queue, klass, worker, tags,
        stack(2,
            'wait', CAST(NULL AS STRING), wait,
            if(how IN ('complete', 'advance'), 'run', 'spent'), how, run
        ) AS (kind, how, time)
    FROM {runs}
),
binned AS (
    SELECT
        *,
        floor(log2(if(time < 1e-6D, 1e-6D, time)) * 64) AS bin,
        CASE
            WHEN time < 60 THEN floor(time)
            WHEN time < 3600 THEN 60 + floor(time / 60)
            WHEN time < 86400 THEN 120 + floor(time / 3600)
            ELSE 144 + floor(time / 86400)
        END AS q
    FROM times
    WHERE kind <> 'wait' OR time IS NOT NULL
),
measured AS (SELECT *, time - pow(2D, (bin + 0.5D) / 64) AS distance FROM binned),
ended AS (
    SELECT
        namespace, date, queue, klass, worker, CAST(NULL AS STRING) AS tag,
        if(grouping(worker) = 1, 'gold/klasses', 'gold/workers') AS _table,
        kind, how, bin, q,
        count(*) AS number, sum(distance) AS distances, sum(distance * distance) AS squares,
        min(time) AS least, max(time) AS most
    FROM measured
    GROUP BY
        namespace, date, queue, kind, how, bin, q, GROUPING SETS ((klass), (worker))
    UNION ALL
    SELECT
        namespace, date, queue, klass, CAST(NULL AS STRING), tag, 'gold/tags',
        kind, how, bin, q,
        count(*), sum(distance), sum(distance * distance), min(time), max(time)
    FROM (SELECT *, explode(array_distinct(tags)) AS tag FROM measured)
    GROUP BY namespace, date, queue, klass, tag, kind, how, bin, q
    UNION ALL
    SELECT
        namespace, date, queue, klass, worker, NULL,
        if(grouping(worker) = 1, 'gold/klasses', 'gold/workers'),
        'end', what, NULL, NULL, count(*), NULL, NULL, NULL, NULL
    FROM {events}
    GROUP BY namespace, date, queue, what, GROUPING SETS ((klass), (worker))
    UNION ALL
    SELECT
        namespace, date, queue, klass, NULL, tag, 'gold/tags',
        'end', what, NULL, NULL, count(*), NULL, NULL, NULL, NULL
    FROM (
        SELECT namespace, date, queue, klass, what, explode(array_distinct(tags)) AS tag
        FROM {events}
    )
    GROUP BY namespace, date, queue, klass, tag, what
)
SELECT * FROM ended WHERE _table <> 'gold/workers' OR worker IS NOT NULL
