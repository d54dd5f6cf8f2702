-- put_flow: put the jobs of a workflow into queues of their own: all of them, or none.
--
-- A job comes after those of the batch that it depends on.
--
-- @arg     now      time
-- @batch   queue:new_queue jid:jid klass:name data:data delay:seconds? priority:priority?
-- @batch   tags:tags? retries:count? depends:jids? context:object? within:seconds?
-- @batch   on_failed:name? terms:object?
-- @option  apart    string        any text: the jobs are independent, and a refused or duplicate
--                                 one doesn't affect the others
-- @option  existing string        any text, with `apart`: leave a job that exists alone, and return
--                                 ''
-- @role    producer
-- @durable
-- @returns list                   the jids; with `apart` as of put_many
-- @raises  EXISTS FULL

local function settle(put)
  enqueue.put(put)
  cascade.set_policy(put.jid, put.on_failed)
end

local flow = {}
local ahead = {}  -- the number of this call's earlier jobs by queue, not put yet
local checked =
  each(function(queue, jid, klass, data, delay, priority, tags, retries, depends, context, within,
  on_failed, terms)
  cascade.check_policy(on_failed)
  if existing and redis.call('EXISTS', keys.job(jid)) == 1 then return '' end
  dependency.check_not_itself(jid, depends or {})
  local other = apart and terms
    and constraints.find_conflict(constraints.parse(terms), record.find(jid), now)
  if other then return other end
  if terms and not apart then constraints.require_no_conflict(terms, jid, now) end
  if redis.call('SCARD', keys.dependencies(jid)) > constants.MAX_BATCH then
    errors.bad_argument('jid', jid, 'has too many dependencies to be put again')
  end
  max_length.check(queue, jid, ahead[queue])
  if not apart then ahead[queue] = (ahead[queue] or 0) + 1 end
  local put = {
    queue = queue, jid = jid, klass = klass, data = data, now = now + #flow * 0.000001,
    delay = delay or 0,
    priority = priority, tags = tags, retries = retries, depends = depends, context = context,
    within = within, on_failed = on_failed,
    terms = terms,
  }
  flow[#flow + 1] = put
  if apart then settle(put) end
  return jid
end)
if apart then
  cascade.run_deferred(now)
  return checked
end
for _, answer in ipairs(checked) do
  if type(answer) == 'table' then error(answer) end
end
for _, put in ipairs(flow) do settle(put) end
cascade.run_deferred(now)
return checked
