-- keys: the dashboard's own; those of the core are in aioqless/lua/lib/base/keys.lua.

-- stream of user actions; bounded
function keys.audit_log() return ns .. ':x:audit-log' end
-- stream of logins, logouts and rejected logins; bounded
function keys.logins() return ns .. ':x:logins' end
