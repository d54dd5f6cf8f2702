-- set_put_flow: put the jobs of a workflow as members of a job set: all of them, or none.
--
-- @arg     set_name name          the set is created if it is new
-- @arg     now      time
-- @batch   queue:new_queue jid:jid klass:name data:data delay:seconds?
-- @options enqueue
-- @option  member   any_jid       as of set_put
-- @option  fence    string
-- @option  then_put job_json
-- @option  when_ended job_json
-- @option  callbacks text
-- @role    producer
-- @durable
-- @returns texts                  the jids; or an empty text and the jid of the job that is there
-- @raises  SETCLOSED BADSTATE EXISTS FULL NOJOB

job_sets.check_open(set_name, member, fence)
job_sets.check(set_name, callbacks)
local flow, reply = flows.read(each, now)
local known = job_sets.find(set_name) or ''
for _, job in ipairs(flow) do job_sets.put(known, job.put) end
if not flow[1] then return reply end
local set = job_sets.open(set_name, {['then'] = then_put, when_ended = when_ended}, callbacks, now)
local added = 0
local function write(put, options)
  enqueue.write(put, options)
  policies.set(put.jid, options.if_dependency_fails, now)
  return put.jid
end
for _, job in ipairs(flow) do
  local _, is_new = job_sets.put(set, job.put, job.options, write)
  if is_new then added = added + 1 end
end
redis.call('HINCRBY', keys.set(set), 'added', added)
redis.call('HSET', keys.set(set), 'touched', string.format('%.6f', now))
return reply
