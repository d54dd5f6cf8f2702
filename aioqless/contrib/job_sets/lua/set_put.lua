-- set_put: put jobs as members of a job set; a refused one doesn't affect the others.
--
-- @arg     set_name name          the set is created if it is new
-- @arg     now      time
-- @batch   queue:new_queue jid:jid klass:name data:data delay:seconds?
-- @options enqueue
-- @option  member   any_jid       the running member that adds them, to a closed set too
-- @option  fence    string        of its run
-- @option  then_put job_json      the job to put when the set is closed and all are complete
-- @option  when_ended job_json    the job to put when it is closed and all have ended
-- @option  callbacks text         tells these from others that are given later
-- @role    producer
-- @durable
-- @returns answers                the jid, as of put, or an error for each
-- @raises  SETCLOSED BADSTATE EXISTS FULL NOJOB

job_sets.check_open(set_name, member, fence)
job_sets.check(set_name, callbacks)
local set, before, added = nil, 0, 0
local answers = each(function(queue, jid, klass, data, delay, options)
  local at = now + before * 0.000001
  before = before + 1
  set = set
    or job_sets.open(set_name, {['then'] = then_put, when_ended = when_ended}, callbacks, now)
  local own, is_new = job_sets.put(set, {
    queue = queue, jid = jid, klass = klass, data = data, now = at, delay = delay or 0,
  }, options, enqueue.put)
  if is_new then added = added + 1 end
  return own
end)
if not set then return answers end
redis.call('HINCRBY', keys.set(set), 'added', added)
redis.call('HSET', keys.set(set), 'touched', string.format('%.6f', now))
return answers
