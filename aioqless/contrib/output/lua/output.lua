-- output: what the runs of a job have emitted since a position.
--
-- @arg     jid      any_jid
-- @arg     position entry_id?     an entry's id; empty: from the first one on
-- @option  latest   count         only this many entries, the latest ones
-- @flags   no-writes
-- @returns texts                  the job's state, empty if there is none; then the id and the
--                                 values of each entry

local PAGE = 50

local state = redis.pcall('HGET', keys.job(jid), 'state')
local found = {type(state) == 'string' and state or ''}
local first = position and '(' .. position or '-'
local key, entries = keys.output(jid), {}
if latest then
  for _, entry in ipairs(redis.call('XREVRANGE', key, '+', first, 'COUNT', latest)) do
    table.insert(entries, 1, entry)
  end
else
  entries = redis.call('XRANGE', key, first, '+', 'COUNT', PAGE)
end
for _, entry in ipairs(entries) do
  found[#found + 1], found[#found + 2] = entry[1], output_entries.values(entry)
end
return found
