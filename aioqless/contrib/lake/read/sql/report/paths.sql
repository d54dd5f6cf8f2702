-- The critical paths, and their jobs as bars: each waits from the end of the one before.
SELECT
    jid, klass, seconds, running, waiting, depth,
    flatten(
        list_transform(
            steps,
            lambda step, number: [
                {
                    'name': step.klass || ' ' || step.jid, 'how': 'waiting',
                    'start': if(number = 1, 0, seconds_between(began, steps[number - 1].ended)),
                    'end': seconds_between(began, step.popped)
                },
                {
                    'name': step.klass || ' ' || step.jid, 'how': 'running',
                    'start': seconds_between(began, step.popped),
                    'end': seconds_between(began, step.ended)
                }
            ]
        )
    ) AS bars
FROM critical
