-- What the texts of the report share: what the tables have of the period, of one queue or of all,
-- and the slots of a time axis, at most 90. Weeks begin on Monday.
CREATE TEMP MACRO is_chosen(name) AS getvariable('queue') IS NULL OR name = getvariable('queue');
CREATE TEMP MACRO is_of_period(day) AS day BETWEEN getvariable('first') AND getvariable('last');
CREATE TEMP MACRO is_inside(moment) AS
    moment >= getvariable('first') AND moment < getvariable('last') + 1;
CREATE TEMP MACRO slot_of(second, width) AS
    (second - if(width > 86400, 345600, 0)) // width * width + if(width > 86400, 345600, 0);
CREATE TEMP MACRO slot(moment) AS slot_of(epoch_us(moment) // 1000000, getvariable('width'));
CREATE TEMP MACRO text_of(second) AS strftime(make_timestamp(second * 1000000), '%Y-%m-%d %H:%M:%S');

-- The busiest twelve queues, or classes of a queue, and the others as one.
CREATE TEMP TABLE days AS
WITH
chosen AS (SELECT *, ${part} AS part FROM klasses WHERE is_of_period(date) AND is_chosen(queue)),
ranked AS (
    SELECT
        part, row_number() OVER (ORDER BY sum(runs) DESC, part) AS number, count(*) OVER () AS total
    FROM chosen GROUP BY part
)
SELECT
    chosen.*,
    if(number <= 12 OR total = 13, part, total - 12 || ' others') AS name,
    least(number, 13) AS number
FROM chosen JOIN ranked USING (part);

CREATE TEMP VIEW minutes AS SELECT * FROM throughput WHERE is_inside(start) AND is_chosen(queue);

SET VARIABLE width = (
    SELECT coalesce(min(width) FILTER (span <= 90 * width), 3024000)
    FROM (SELECT (epoch_us(max(start)) - epoch_us(min(start))) / 1e6 + 60 AS span FROM minutes), (
        SELECT unnest([
            1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400, 604800
        ]) AS width
    )
);

CREATE TEMP VIEW slots AS
SELECT unnest(range(first, last + 1, getvariable('width'))) AS moment
FROM (SELECT min(slot(start)) AS first, max(slot(start)) AS last FROM minutes);

-- The twelve groups that failed most, and the others as one.
CREATE TEMP TABLE failed AS
WITH
chosen AS (SELECT * FROM failures WHERE is_of_period(date) AND is_chosen(queue)),
ranked AS (
    SELECT
        failure_group,
        row_number() OVER (ORDER BY sum(count) DESC, sum(retried) DESC, failure_group) AS number,
        count(*) OVER () AS total
    FROM chosen GROUP BY failure_group
)
SELECT
    chosen.*,
    if(number <= 12 OR total = 13, failure_group, total - 12 || ' other groups') AS name,
    least(number, 13) AS number,
    if(number <= 5, 'var(--group' || number || ')', 'var(--muted)') AS color
FROM chosen JOIN ranked USING (failure_group);

-- The longest paths; one that begins a longer one is left out.
CREATE TEMP TABLE critical AS
WITH longest AS (
    SELECT * FROM paths WHERE is_of_period(date) AND is_chosen(queue)
    ORDER BY seconds DESC, jid LIMIT 24
)
SELECT * FROM longest
WHERE (namespace, jid) NOT IN (SELECT (namespace, unnest(steps[:-2]).jid) FROM longest)
ORDER BY seconds DESC, jid LIMIT 6;
