-- sweep: archive jobs that ended without our scripts, a bounded number per call.
--
-- @returns json                   {found, missing: [jids without a hash], next: cursor, null at the
--                                 end}
-- @when    completed              archive completed jobs
-- @arg     from     string?       cursor from the previous call
-- @when    failed                 archive failed jobs of a group
-- @arg     group    string
-- @arg     from     string?
-- @flags   allow-oom
-- @role    archiver

local PORTION = 200
if from and not string.find(from, '^%d+$') then
  errors.bad_argument('from', from, 'is not a cursor of sweep')
end
if not archive.is_on() then return '{"found":0,"missing":[],"next":null}' end
local jids, next_from = {}, nil
if word == 'completed' then
  local step = redis.call('ZSCAN', keys.completed(), from or '0', 'COUNT', PORTION)
  for i = 1, #step[2], 2 do jids[#jids + 1] = step[2][i] end
  next_from = step[1] ~= '0' and step[1] or nil
else
  local at = tonumber(from or '0')  -- from the tail, the oldest: new failures are added at the head
  jids = redis.call('LRANGE', keys.group(group), -at - PORTION, -at - 1)
  next_from = #jids == PORTION and string.format('%.0f', at + PORTION) or nil
end
local found, missing = 0, {}
for _, jid in ipairs(jids) do
  local job = record.read(jid)
  if not job then
    missing[#missing + 1] = jid
  elseif archive_backfill.append(job) then
    found = found + 1
  end
end
return '{"found":' .. found .. ',"missing":' .. json.texts(missing) .. ',"next":'
  .. (next_from and cjson.encode(next_from) or 'null') .. '}'
