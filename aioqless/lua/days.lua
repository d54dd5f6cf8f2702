-- days: what the latest days came to in a queue.
--
-- @arg     queue    string
-- @arg     date     time          any time of the last day
-- @arg     count    count?        default 14; at most 100
-- @flags   no-writes
-- @returns json                   [{day, popped, completed, failures, retries, lost_locks, explicit_retries}], the oldest first; `day` is when
--                                 it began, `retries` the sum of the two after it

local days, last = {}, stats.start_of_day(date)
for ago = math.min(count or 14, 100) - 1, 0, -1 do
  local day = last - ago * 86400
  if day >= 0 then days[#days + 1] = '{"day":' .. json.number(day) .. ',' .. stats.encode_totals(day, queue) .. '}' end
end
return json.list(days)
