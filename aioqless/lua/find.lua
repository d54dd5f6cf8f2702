-- find: search jobs by their klass or a part of it, a bounded number of keys per call.
--
-- @arg     klass    string        case-insensitive
-- @arg     cursor   string?       from the previous call; empty or 0: start
-- @arg     count    count?        about how many keys to read, at most 10,000; 1,000 unless given
-- @arg     exact    text?         given: the whole klass, case-sensitive
-- @flags   no-writes
-- @returns json                   {cursor, found: [jid]}; the cursor is "0" at the end

if cursor and not keyspace_scan.is_cursor(cursor) then
  errors.bad_argument('cursor', cursor, 'is not a cursor of find')
end
local found, wanted = {}, exact and klass or string.lower(klass)
local prefix = string.gsub(ns, '[%*%?%[%]\\^-]', '\\%0') .. ':j:'
local step = redis.call('SCAN', cursor or '0', 'MATCH', prefix .. '*', 'COUNT',
  math.min(math.max(count or 1000, 1), 10000), 'TYPE', 'hash')
for _, key in ipairs(step[2]) do
  local jid = string.sub(key, #ns + 4)
  local name = redis.call('HGET', keys.job(jid), 'klass')
  local is_found = name == wanted
    or name and not exact and string.find(string.lower(name), wanted, 1, true)
  if is_found then found[#found + 1] = jid end
end
return '{"cursor":' .. cjson.encode(step[1]) .. ',"found":' .. json.texts(found) .. '}'
