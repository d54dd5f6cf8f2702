-- keys: those of browser sessions; those of the core are in aioqless/lua/lib/base/keys.lua.

-- T what an open session depends on, as a digest; expires
function keys.session(id) return ns .. ':x:session:' .. id end
