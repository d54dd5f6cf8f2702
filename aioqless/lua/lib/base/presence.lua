-- presence: which keys of the namespace exist, of those that most calls don't find. One `EXISTS`
-- asks for all of them.

-- Whether there is such a key: config (options that differ from the defaults), tracked, paused,
-- retention_rules.
function presence.has(name) return (call.found_keys or presence.read())[name] end

function presence.read()
  -- All but `config` are named twice, so that the count tells when it is the only one.
  local count = redis.call('EXISTS', keys.config(), keys.tracked(), keys.tracked(), keys.paused(),
    keys.paused(), keys.retention_rules(), keys.retention_rules())
  call.found_keys = count < 2 and {config = count == 1} or presence.read_each()
  return call.found_keys
end

function presence.read_each()
  return {
    config = redis.call('EXISTS', keys.config()) == 1,
    tracked = redis.call('EXISTS', keys.tracked()) == 1,
    paused = redis.call('EXISTS', keys.paused()) == 1,
    retention_rules = redis.call('EXISTS', keys.retention_rules()) == 1,
  }
end
