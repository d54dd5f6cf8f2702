-- emit: append to the output of running jobs; a refused job doesn't affect the others.
--
-- @arg     worker   text          must hold the locks
-- @arg     now      time
-- @batch   jid:any_jid fence:string start:count count:count values:string ttl:count keep:string?
-- @role    worker
-- @returns answers                `ok` or an error for each
-- @raises  NOJOB BADSTATE LOCKLOST

-- start: how many values the run has emitted before these; values: a JSON array of `count`, perhaps
-- encrypted; ttl: seconds that the output is kept; keep: continue that of an earlier run.
local changed = {}
local answers = each(function(jid, fence, start, count, values, ttl, keep)
  local job = record.require_held(jid, worker, fence, record.read_running)
  output_entries.append(job, start, count, values, ttl, keep)
  changed[#changed + 1] = jid
  return 'ok'
end)
if #changed > 0 then output_entries.wake_readers(changed) end
return answers
