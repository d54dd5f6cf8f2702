-- step: store what a run has done, so that later runs need not do it again.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     kind     string        `step`: stored once; `cursor`: a later value replaces it
-- @arg     name     name
-- @arg     result   string        JSON
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @role    worker
-- @durable
-- @raises  NOJOB BADSTATE LOCKLOST

if kind ~= 'step' and kind ~= 'cursor' then
  errors.bad_argument('kind', kind, 'must be step or cursor')
end
local job = record.require_held(jid, worker, fence)
step_entries.store(job, kind, name, result, now)
