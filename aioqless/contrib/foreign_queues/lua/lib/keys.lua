-- keys: those of the import; those of the core are in aioqless/lua/lib/base/keys.lua.

-- T the number of foreign jobs imported without a jid
function keys.import_counter() return ns .. ':x:import-counter' end
-- L foreign entries that can't be imported, as JSON
function keys.rejected_imports() return ns .. ':x:rejected-imports' end

-- Another system's keys, outside of the namespace. `prefix` is empty or ends in a colon.

-- S names of its queues
function keys.foreign_queues(prefix) return prefix .. 'queues' end
-- L waiting entries of a queue
function keys.foreign_queue(prefix, queue) return prefix .. 'queue:' .. queue end
-- L entries that a node of exq took and hasn't finished
function keys.foreign_backup(prefix, node, queue)
  return prefix .. 'queue:backup::' .. node .. '::' .. queue
end
-- Z nodes of exq by their latest heartbeat
function keys.foreign_heartbeats(prefix) return prefix .. 'heartbeats' end
-- H the state of a node of exq; expires after a minute
function keys.foreign_node(prefix, node) return prefix .. node end
-- Z `schedule`, `retry`: entries by when they are due
function keys.foreign_sorted(prefix, name) return prefix .. name end
