-- What is counted: each end of a stage, and each run with the seconds that it waited and took.
SELECT
    namespace, date, queue, klass, worker, tags,
    what, NULL AS how, false AS is_run,
    NULL::DOUBLE AS waited, NULL::DOUBLE AS ran, NULL::DOUBLE AS spent
FROM events
UNION ALL
SELECT
    namespace, date, queue, klass, worker, tags,
    NULL, how, true,
    wait,
    CASE WHEN how IN ('complete', 'advance') THEN run END,
    CASE WHEN how IN ('complete', 'advance') THEN NULL ELSE run END
FROM runs
