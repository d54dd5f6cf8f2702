-- dependency_failures: the failures among jobs, and the jobs that may hold others of them.
--
-- @rest    jids     string
-- @option  after    string        any value: look at the jobs that these were last put to depend on
-- @flags   no-writes
-- @role    worker
-- @returns json                   {failures: [{jid, klass, group, message, data}], more: the jobs
--                                 to ask for next, at most 1,000 of each, done: how many of the
--                                 jids this answers}

local MOST_BYTES = 4194304

local found, more, bytes, done = {}, {}, 0, 0
while done < #jids and bytes < MOST_BYTES do
  done = done + 1
  local jid = jids[done]
  local f = redis.pcall('HMGET', keys.job(jid), 'state', 'klass', 'failure', 'x-after')
  if f.err then record.check_type(jid) end
  local others = after and json.parse_texts(f[4])
    or f[1] == 'depends' and redis.call('SRANDMEMBER', keys.dependencies(jid), constants.MAX_BATCH)
    or {}
  for _, other in ipairs(others) do more[#more + 1] = other end
  if f[1] == 'failed' and not after then
    local failure = json.parse_object(f[3])
    found[#found + 1] = failure_jobs.encode_failure(jid, f[2],
      json.to_text(failure.group or failure.type), json.to_text(failure.message))
    bytes = bytes + #found[#found]
  end
end
return '{"failures":' .. json.list(found) .. ',"more":' .. json.texts(more) .. ',"done":' .. done
  .. '}'
