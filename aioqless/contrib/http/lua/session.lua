-- session: login sessions of the dashboard and of human tasks, and known addresses of users.
--
-- @when    keep                   store a session
-- @arg     id       string        a digest, from which no cookie can be made
-- @arg     proof    string        a digest of what the session depends on, such as a password's
--                                 hash
-- @arg     seconds  interval      TTL
-- @returns nothing
-- @when    read                   return the proofs of sessions
-- @rest    ids      string        at most 1,000
-- @returns json                   the proof of each, false for an unknown id
-- @when    drop                   delete a session
-- @arg     id       string
-- @returns nothing
-- @flags   allow-oom
-- @role    people dashboard

if word == 'keep' then
  redis.call('SET', keys.session(id), proof, 'EX', string.format('%.0f', math.max(1, seconds)))
  return nil
end
if word == 'drop' then
  redis.call('DEL', keys.session(id))
  return nil
end
local proofs = {}
for i = 1, math.min(#ids, constants.MAX_BATCH) do
  proofs[i] = cjson.encode(redis.call('GET', keys.session(ids[i])))
end
return json.list(proofs)
