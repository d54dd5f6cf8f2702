-- clock: the time by this server's clock, which all workers share.

local clock_asked = false

function clock.now()
  clock_asked = true
  local time = redis.call('TIME')
  return time[1] + time[2] / 1000000
end

-- Whether this call uses it, since its caller gave no time.
function clock.is_used() return clock_asked end
