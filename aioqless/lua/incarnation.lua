-- incarnation: whose a worker's stable name is: claimed and renewed, recovered from the former one, left.
--
-- @arg     worker   name
-- @arg     now      time
-- @when    claim                  also renews; refused while another one has the name
-- @arg     told     object        {id, host, place, pid, started}: which process where
-- @arg     gone     string?       the id of a former one that is known to be gone
-- @returns text                   `new`, or `taken over` when somebody else had the name before
-- @when    recover                hand back what the former one held, each at its place and at no cost of a retry
-- @arg     id       string        of the one that has the name now
-- @returns number                 how many jobs that were; not all while there are any
-- @when    leave
-- @arg     id       string
-- @returns nothing
-- @flags   allow-oom
-- @raises  NAMETAKEN

if word == 'claim' then return name_lease.claim(worker, told, gone, now) and 'taken over' or 'new' end
if word == 'leave' then return name_lease.release(worker, id) end
name_lease.check(worker, id, now)
return json.number(release.release_worker(worker, now, 100))
