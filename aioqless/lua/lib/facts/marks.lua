-- marks: moments that charts show, such as deploys. Each is JSON, {at, text, deploy}, by when it
-- was made; that of a deploy by when a worker last said that it has the version.

local MOST = 200
local ALIVE = 120  -- seconds for which a version counts as running; workers say it each minute

-- Note that a worker has a version, and mark its first report: no worker has it yet, and it isn't
-- the version of the latest deploy, whose workers may have been restarted. A version that returns
-- is marked once more only: two applications may take turns.
function marks.note_version(version, now)
  local key = keys.marks()
  local found = redis.call('ZRANGE', key, 0, -1, 'REV', 'WITHSCORES')
  local ending = ',"text":' .. cjson.encode(version) .. ',"deploy":true}'
  local seen, newest, marked, latest, latest_at = nil, nil, 0, nil, -1
  for i = 1, #found, 2 do
    local text = found[i]
    local is_same = string.sub(text, -#ending) == ending
    if is_same then
      if seen == nil then newest, seen = text, tonumber(found[i + 1]) end
      if now - seen < ALIVE then break end
      marked = marked + 1
    end
    local at = string.find(text, ',"deploy":true}', -15, true)
      and tonumber(string.match(text, '^{"at":([^,]*),'))
    if at and at > latest_at then latest, latest_at = is_same, at end
  end
  if newest and (now - seen < ALIVE or latest or marked > 1) then
    redis.call('ZADD', key, 'GT', now, newest)
  else
    marks.add(version, true, now)
  end
end

function marks.add(text, deploy, now)
  redis.call('ZADD', keys.marks(), now, '{"at":' .. json.number(now) .. ',"text":'
    .. cjson.encode(text) .. ',"deploy":' .. tostring(deploy) .. '}')
  redis.call('ZREMRANGEBYRANK', keys.marks(), 0, -MOST - 1)
end
