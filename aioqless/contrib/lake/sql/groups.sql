-- One row for each group and day: how stages and runs ended, and how long runs waited and took.
SELECT
    ${keys},
    count(*) FILTER (what = 'complete') AS completed,
    count(*) FILTER (what = 'advance') AS advanced,
    count(*) FILTER (what = 'fail') AS failed,
    count(*) FILTER (what = 'cancel') AS cancelled,
    count(*) FILTER (what = 'move') AS moved,
    count(*) FILTER (is_run) AS runs,
    count(*) FILTER (how = 'retried') AS retried,
    count(*) FILTER (how = 'released') AS released,
    count(*) FILTER (how = 'timed-out') AS timed_out,
    count(*) FILTER (how = 'lost') AS lost,
    cell(waited) AS wait,
    cell(ran) AS run,
    cell(spent) AS spent,
    namespace, date
FROM (${rows})
GROUP BY ${keys}, namespace, date
