-- marks: moments that charts show, such as deploys.

local MOST = 200
local ALIVE = 60       -- seconds since a report for which a version counts as running
local REMEMBERED = 86400

-- Note that a worker has a version, and mark its first report: no worker has it yet, and it isn't
-- the version of the latest deploy, whose workers may have been restarted. A version that returns
-- is marked once more only: two applications may take turns.
function marks.note_version(version, now)
  local key = keys.versions()
  local seen = tonumber(redis.call('ZSCORE', key, version))
  redis.call('ZADD', key, now, version)
  if seen and now - seen < ALIVE then return end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - REMEMBERED)
  local latest, marked = nil, 0
  for _, text in ipairs(redis.call('LRANGE', keys.marks(), 0, -1)) do
    local mark = cjson.decode(text)
    if mark.deploy then
      latest = latest or mark.text
      if mark.text == version then marked = marked + 1 end
    end
  end
  if latest ~= version and marked < 2 then marks.add(version, true, now) end
end

function marks.add(text, deploy, now)
  redis.call('LPUSH', keys.marks(), '{"at":' .. json.number(now) .. ',"text":'
    .. cjson.encode(text) .. ',"deploy":' .. tostring(deploy) .. '}')
  redis.call('LTRIM', keys.marks(), 0, MOST - 1)
end
