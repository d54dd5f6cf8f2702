-- depends: add or remove dependencies of a job that is held by dependencies.
--
-- @arg     jid      string        in the state depends
-- @when    on                     add dependencies to a job
-- @rest    jids     string        jobs to wait for; unknown and complete ones count as done
-- @option  now      time          Redis' clock unless given
-- @option  missing  name          what an unknown job is: done (default) or refuse
-- @returns count                  1
-- @when    off                    remove dependencies of a job
-- @rest    jids     string        or the one word `all`
-- @option  now      time
-- @returns count                  1
-- @flags   allow-oom
-- @role    producer
-- @durable
-- @raises  NOJOB BADSTATE BADARG

local job = record.require(jid)
if job.state ~= 'depends' then errors.bad_state(job, 'the job is not held by dependencies') end
if #jids == 0 then errors.bad_argument('jids', nil, 'name at least one job') end
if word == 'on' then
  dependency.check_not_itself(jid, jids)
  if missing then dependency.check_missing(missing, jids) end
  dependency.link(jid, jids)
  policies.follow_links(jid)
elseif jids[1] == 'all' and #jids == 1 then
  dependency.unlink_all(jid)
else
  dependency.unlink(jid, jids)
end
now = now or args.time('now')
dependents.release(jid, now)
return '1'
