-- One row for each job: its last stage, the sums of all, and the last 100 stages in their order.
SELECT
    jid, last.klass, last.queue, last.state, last.priority, last.tags, last.worker,
    put, last.popped, last.ended, attempts, wait, run,
    last.retries, last.remaining, last.failure_group, last.message,
    spawned_from, depends, stages[-100:] AS stages,
    namespace, last.date
FROM (
    SELECT
        namespace, jid,
        min(put) AS put,
        sum(attempts)::BIGINT AS attempts,
        sum(wait) AS wait,
        sum(run) AS run,
        first(spawned_from ORDER BY ended, id) FILTER (spawned_from IS NOT NULL) AS spawned_from,
        list_distinct(flatten(list(depends) FILTER (depends IS NOT NULL))) AS depends,
        list(stage ORDER BY ended, id) AS stages,
        last(stage ORDER BY ended, id) AS last
    FROM (
        SELECT
            namespace, jid, id, ended, put, attempts, wait, run, spawned_from, depends,
            {
                'id': id, 'date': date, 'what': what, 'klass': klass, 'queue': queue,
                'next_queue': next_queue, 'state': state, 'priority': priority, 'tags': tags,
                'worker': worker, 'put': put, 'popped': popped, 'ended': ended,
                'attempts': attempts, 'wait': wait, 'run': run,
                'retries': retries, 'remaining': remaining,
                'failure_group': failure_group, 'message': message,
                'spawned_from': spawned_from, 'depends': depends, 'swept': coalesce(swept, false)
            } AS stage
        FROM (
            SELECT
                * EXCLUDE (runs),
                len(list_filter(runs, lambda r: r.popped IS NOT NULL)) AS attempts,
                coalesce(
                    list_sum(list_transform(runs, lambda r: seconds_between(r.put, r.popped))), 0
                ) AS wait,
                coalesce(
                    list_sum(list_transform(runs, lambda r: seconds_between(r.popped, r.ended))), 0
                ) AS run
            FROM events
        )
    )
    GROUP BY namespace, jid
)
