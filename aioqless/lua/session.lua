-- session: what the web pages remember of people who log in, for a limited time: open sessions, and addresses known to be a user's.
--
-- @when    keep
-- @arg     id       string        a digest, from which no cookie can be made
-- @arg     proof    string        a digest of what it depends on, such as the hash of a password
-- @arg     seconds  interval      how long it lasts
-- @returns nothing
-- @when    read
-- @rest    ids      string        at most 1,000
-- @returns json                   the proof of each, false for an id without a record
-- @when    drop
-- @arg     id       string
-- @returns nothing
-- @flags   allow-oom

if word == 'keep' then
  redis.call('SET', keys.session(id), proof, 'EX', string.format('%.0f', math.max(1, seconds)))
  return nil
end
if word == 'drop' then
  redis.call('DEL', keys.session(id))
  return nil
end
local proofs = {}
for i = 1, math.min(#ids, 1000) do proofs[i] = cjson.encode(redis.call('GET', keys.session(ids[i]))) end
return json.list(proofs)
