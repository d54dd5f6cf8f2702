-- name_lease: the lease on a worker's stable name, which only one process may hold.
--
-- @arg     worker   name
-- @arg     now      time
-- @when    claim                  claim or renew the lease; refused while another process holds it
-- @arg     process  object        {id, host, pid} of the process
-- @returns text                   `new`, or `taken over` if another process held it before
-- @when    recover                release the former holder's jobs without using a retry
-- @arg     id       string        of the present holder, or of an ended process
-- @returns count                  the number of jobs released; call again until it is 0
-- @when    leave                  release the lease
-- @arg     id       string
-- @returns nothing
-- @flags   allow-oom
-- @role    worker
-- @raises  NAMETAKEN

if word == 'claim' then
  return name_lease.claim(worker, process, now) and 'taken over' or 'new'
end
if word == 'leave' then return name_lease.release(worker, id) end
name_lease.check(worker, id, now)
return json.number(lost_workers.release(worker, now, 100))
