-- The groups that failed most, each with its latest failures.
SELECT
    name, color, sum(count)::BIGINT AS failed, sum(retried)::BIGINT AS retried,
    min(first_seen) AS first, max(last_seen) AS last,
    list_sort(list_distinct(flatten(list(klasses)))) AS klasses,
    list_reverse_sort(
        list_transform(
            flatten(list(samples)),
            lambda s: {'final': s.final, 'ended': s.ended, 'jid': s.jid, 'message': s.message}
        )
    )[:3] AS samples
FROM failed
GROUP BY name, color, number
ORDER BY number
