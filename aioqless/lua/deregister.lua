-- deregister: remove workers from the list of known workers.
--
-- @rest    workers  string
-- @option  id       string        only if the latest process of this name was this one
-- @flags   allow-oom
-- @role    worker dashboard
-- @returns nothing

if #workers == 0 then errors.bad_argument('workers', nil, 'name at least one worker') end
for _, worker in ipairs(workers) do beats.forget(worker, id) end
