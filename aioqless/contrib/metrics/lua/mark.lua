-- mark: mark this moment in charts.
--
-- @arg     text     name
-- @arg     now      time
-- @flags   allow-oom
-- @role    worker dashboard
-- @returns nothing

marks.add(text, false, now)
