-- config: read and change the options that all clients of the namespace share.
--
-- @when    get                    return an option, or all of them
-- @arg     option   string?
-- @returns json                   the value, null if unknown; without an option, all of them
-- @when    set                    set an option
-- @arg     option   name
-- @arg     value    text?         empty: unset
-- @returns nothing
-- @when    unset                  return an option to its default
-- @arg     option   string
-- @returns nothing
-- @flags   allow-oom
-- @role    dashboard
-- @durable

if word == 'get' then
  if option then return config.get(option) end
  return config.get_all()
elseif word == 'set' and value then
  config.set(option, value)
else
  config.unset(option)
end
