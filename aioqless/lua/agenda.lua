-- agenda: do what changes have noted for other jobs.
--
-- Clients send it when a reply says that there is something; idle workers and ticks do the rest.
--
-- @arg     now      time
-- @flags   allow-oom
-- @role    worker producer people dashboard
-- @returns nothing

agenda.run_stored(now)
