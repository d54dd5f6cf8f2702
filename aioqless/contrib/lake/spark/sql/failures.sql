-- One row for each failure group, queue and day. A sample has the end of the message, where a
-- traceback says the error.
WITH
failed AS (
    SELECT
        namespace, date, failure_group, queue, ended, jid, klass, worker, message, true AS final
    FROM {events}
    WHERE what = 'fail' AND failure_group IS NOT NULL
    UNION ALL
    SELECT
        namespace, date, failure_group, queue, ended, jid, klass, worker, message, false
    FROM {runs}
    WHERE how <> 'fail' AND failure_group IS NOT NULL
),
-- The latest five of each group, of which only these are shuffled.
latest AS (
    SELECT *
    FROM (
        SELECT
            *,
            row_number() OVER (
                PARTITION BY namespace, date, failure_group, queue
                ORDER BY NOT final, ended DESC, jid
            ) AS number
        FROM failed
    )
    WHERE number <= 5
),
parts AS (
    SELECT
        namespace, date, failure_group, queue,
        unix_micros(ended) div 3600000000 % 24 AS hour,
        count_if(final) AS count,
        count_if(NOT final) AS retried,
        min(ended) AS first_seen,
        max(ended) AS last_seen,
        collect_set(klass) AS klasses,
        NULL AS number,
        NULL AS sample
    FROM failed
    GROUP BY namespace, date, failure_group, queue, hour
    UNION ALL
    SELECT
        namespace, date, failure_group, queue, NULL, NULL, NULL, NULL, NULL, NULL, number,
        named_struct(
            'ended', ended, 'jid', jid, 'klass', klass, 'worker', worker,
            'message',
            if(length(message) > 2000, concat('…', right(message, 2000)), message),
            'final', final
        )
    FROM latest
)
SELECT
    failure_group, queue,
    sum(count) AS count,
    sum(retried) AS retried,
    min(first_seen) AS first_seen,
    max(last_seen) AS last_seen,
    array_sort(array_distinct(flatten(collect_list(klasses)))) AS klasses,
    transform(
        sequence(0L, 23L),
        each -> coalesce(
            map_from_entries(
                collect_list(struct(hour, count)) FILTER (WHERE hour IS NOT NULL)
            )[each],
            0L
        )
    ) AS by_hour,
    transform(
        array_sort(
            collect_list(struct(number, sample)) FILTER (WHERE number IS NOT NULL)
        ),
        each -> each.sample
    ) AS samples,
    namespace, date
FROM parts
GROUP BY namespace, date, failure_group, queue
