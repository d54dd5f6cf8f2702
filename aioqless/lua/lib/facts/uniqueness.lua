-- uniqueness: unique keys, each held by at most one job.
-- The holder is the job that the entry names, while its state and constraints say so: a crash
-- leaves no key behind. Only entries with a time limit count by themselves; they expire.

local HAD = {
  started = {waiting = true, scheduled = true, depends = true, stalled = true},
  done = {waiting = true, scheduled = true, depends = true, stalled = true, running = true},
}

-- When an entry expires by itself, if ever, and the jid that it names.
function uniqueness.read_entry(key)
  local ends, jid = string.match(redis.call('GET', keys.unique(key)) or '', '^([%d%.]*):(.+)$')
  return tonumber(ends), jid
end

-- The jid of the job that holds a key; nil if none does.
function uniqueness.find_holder(key, now)
  local ends, jid = uniqueness.read_entry(key)
  if not jid or ends then return jid and ends > now and jid or nil end
  return uniqueness.holds(jid, key) and jid or nil
end

-- Whether the state and the constraints of a job say that it has a key.
function uniqueness.holds(jid, key)
  local job = redis.call('HMGET', keys.job(jid), 'state', 'x-constraints')
  local own = job_constraints.read(job[2])
  local had = own.unique == key and HAD[own['until']]
  return had and had[job[1]]
end

function uniqueness.claim(own, jid, now)
  local seconds = own['for']
  if seconds then
    redis.call('SET', keys.unique(own.unique), string.format('%.6f:', now + seconds) .. jid, 'PX',
      string.format('%.0f', math.max(1, seconds * 1000)))
  else
    redis.call('SET', keys.unique(own.unique), ':' .. jid)
  end
end

function uniqueness.release(key, jid)
  local _, named = uniqueness.read_entry(key)
  if named == jid then redis.call('DEL', keys.unique(key)) end
end
