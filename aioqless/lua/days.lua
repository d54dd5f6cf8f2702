-- days: counters of the latest days of a queue.
--
-- @arg     queue    string
-- @arg     date     time          any time of the last day
-- @arg     count    count?        number of days, at most 100; 14 unless given
-- @flags   no-writes
-- @returns json                   [{day, popped, completed, failures, retries, lost_locks,
--                                 explicit_retries}], oldest first; `day` is when it began,
--                                 `retries` the sum of lost_locks and explicit_retries

local days, last = {}, clock.start_of_day(date)
for ago = math.min(count or 14, 100) - 1, 0, -1 do
  local day = last - ago * 86400
  if day >= 0 then
    days[#days + 1] = '{"day":' .. json.number(day) .. ',' .. stats.encode_totals(day, queue) .. '}'
  end
end
return json.list(days)
