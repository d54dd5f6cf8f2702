-- audit_log: the audit log of user actions, about the latest 10,000; logins are logged separately.
--
-- @when    add                    record an action of a user
-- @arg     who      text
-- @arg     act      name
-- @arg     about    object        the target and the arguments
-- @arg     outcome  text
-- @returns text                   the entry's id
-- @when    login                  record a login, or a refused one
-- @arg     who      text
-- @arg     act      name
-- @arg     about    object
-- @arg     outcome  text
-- @returns text
-- @when    list                   list the actions of users
-- @arg     before   entry_id?     only entries before it
-- @arg     count    count?        at most 1,000; 50 unless given
-- @returns json                   [{place, when, who, act, about, outcome}], newest first
-- @when    logins                 list the logins
-- @arg     before   entry_id?
-- @arg     count    count?
-- @returns json
-- @flags   allow-oom
-- @role    dashboard

local stream = string.find(word, 'login', 1, true) and keys.logins() or keys.audit_log()
if word == 'add' or word == 'login' then
  return redis.call('XADD', stream, 'MAXLEN', '~', 10000, '*', 'who', who, 'act', act, 'about',
    about, 'outcome', outcome)
end
local acts = {}
for i, entry in ipairs(redis.call('XREVRANGE', stream, before and '(' .. before or '+', '-',
  'COUNT', math.min(count or 50, constants.MAX_BATCH))) do
  local f = entry[2]
  acts[i] = '{"place":' .. cjson.encode(entry[1]) .. ',"when":'
    .. json.number(tonumber(string.match(entry[1], '^%d+')) / 1000)
    .. ',"who":' .. cjson.encode(f[2]) .. ',"act":' .. cjson.encode(f[4]) .. ',"about":' .. f[6]
      .. ',"outcome":' .. cjson.encode(f[8]) .. '}'
end
return json.list(acts)
