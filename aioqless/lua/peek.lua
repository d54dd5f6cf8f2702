-- peek: the jobs that the next pop would return, without locking them.
--
-- @key     queue
-- @arg     count    count         at most 1,000
-- @arg     now      time
-- @arg     offset   count?
-- @flags   allow-oom
-- @role    worker people dashboard
-- @present view.encode_many(answer)
-- @returns json                   the jobs

local wanted = math.min(count, constants.MAX_BATCH)
if wanted == 0 then return {} end
offset = offset or 0
local lapsed = redis.call('ZCOUNT', keys.locks(queue), '-inf', now)
pop.prepare(queue, now, math.min(offset + wanted - lapsed, constants.MAX_BATCH), {})
local jids = listing.read_page(keys.locks(queue), 0, lapsed, offset, wanted)
local from = math.max(0, offset - lapsed)
if #jids < wanted then
  for _, jid in ipairs(redis.call('ZRANGE', keys.waiting(queue), from, from + wanted - #jids - 1,
    'REV')) do
    jids[#jids + 1] = jid
  end
end
if #jids < wanted then notes.find_stored(now) end
return jids
