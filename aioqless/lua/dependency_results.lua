-- dependency_results: the kept results of the jobs that a job was last put to depend on.
--
-- @arg     jid      string
-- @option  start    count         number of those jobs to skip
-- @flags   no-writes
-- @role    worker
-- @returns json                   {results: {jid: result}, takes: {jid: seconds} of those that are
--                                 its arguments, or null, next: `start` of the next call, or null}
-- @raises  NOJOB

local MOST_BYTES = 4194304

local job = redis.pcall('HMGET', keys.job(jid), 'jid', 'x-after', 'x-constraints')
if job.err then record.check_type(jid) end
if not job[1] then errors.no_such_job(jid) end
local after, found, bytes, at = json.parse_list(job[2]), {}, 0, start or 0
while at < #after and bytes < MOST_BYTES do
  at = at + 1
  local text = results.read(after[at])
  if text then
    found[#found + 1] = cjson.encode(after[at]) .. ':' .. text
    bytes = bytes + #text
  end
end
local takes = job_constraints.read(job[3]).takes
return '{"results":{' .. table.concat(found, ',') .. '},"takes":'
  .. (takes and cjson.encode(takes) or 'null')
  .. ',"next":' .. (at < #after and at or 'null') .. '}'
