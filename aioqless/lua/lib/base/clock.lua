-- clock: the time by this server's clock, which all workers share.

function clock.now()
  call.clock_asked = true
  local time = redis.call('TIME')
  return time[1] + time[2] / 1000000
end

-- Whether this call uses it, since its caller gave no time.
function clock.is_used() return call.clock_asked end

function clock.start_of_day(time) return time - time % constants.DAY end
