-- One row for each failure group, queue and day. A sample has the end of the message, where a
-- traceback says the error.
SELECT
    failure_group, queue,
    count(*) FILTER (final) AS count,
    count(*) FILTER (NOT final) AS retried,
    min(ended) AS first_seen,
    max(ended) AS last_seen,
    list(DISTINCT klass ORDER BY klass) AS klasses,
    list_transform(
        range(24),
        lambda hour: coalesce(
            (histogram(epoch_us(ended) // 3600000000 % 24) FILTER (final))[hour], 0
        )::BIGINT
    ) AS by_hour,
    arg_min(
        {
            'ended': ended, 'jid': jid, 'klass': klass, 'worker': worker,
            'message': if(length(message) > 2000, '…' || right(message, 2000), message),
            'final': final
        },
        {'retried': NOT final, 'age': -epoch_us(ended), 'jid': jid},
        5
    ) AS samples,
    namespace, date
FROM (
    SELECT
        namespace, date, failure_group, queue, ended, jid, klass, worker, message, true AS final
    FROM events
    WHERE what = 'fail' AND failure_group IS NOT NULL
    UNION ALL
    SELECT
        namespace, date, failure_group, queue, ended, jid, klass, worker, message, false
    FROM runs
    WHERE how <> 'fail' AND failure_group IS NOT NULL
)
GROUP BY failure_group, queue, namespace, date
