-- worker_facts: what each worker is and uses.

local HISTORY = 480  -- minutes

-- Note a report, and return whether its process has sent it before. The id of a report begins with
-- that of the process, as several may have one name.
function worker_facts.is_repeated(report)
  local process = string.match(report, '^[^:]*')
  local key = keys.process_report(process)
  if redis.call('GET', key) == report then return true end
  redis.call('SET', key, report, 'EX', HISTORY * 60)
  return false
end

function worker_facts.store(worker, facts, memory, busy, now)
  local key, history = keys.worker_facts(worker), keys.worker_history(worker)
  redis.call('SET', key, facts, 'EX', HISTORY * 60)
  local minute = math.floor(now / 60)
  local sample = string.format('%d %d %d', minute, memory, busy)
  local last = redis.call('LINDEX', history, -1)
  if last and tonumber(string.match(last, '^%d+')) >= minute then
    redis.call('LSET', history, -1, sample)
  else
    redis.call('RPUSH', history, sample)
    redis.call('LTRIM', history, -HISTORY, -1)
    redis.call('EXPIRE', history, HISTORY * 60)
  end
end

-- The facts of a worker as JSON; empty if it has reported none.
function worker_facts.read(worker) return redis.call('GET', keys.worker_facts(worker)) or '' end

function worker_facts.drop(worker)
  redis.call('UNLINK', keys.worker_facts(worker), keys.worker_history(worker))
end
