-- import: import jobs that clients of sidekiq, exq and resque pushed, each in one step.
--
-- Entries that cannot be imported are stored as rejected. No role of ACL users includes this
-- command, since it needs the foreign keys, too.
--
-- @returns json                   {taken, passed, refused: [{why, source, jid}], more: whether to
--                                 call again}, or a list of names
-- @arg     prefix   text          prefix of the foreign keys
-- @arg     into     text          prefix of our queues' names, before the foreign queue's name
-- @arg     now      time
-- @arg     first_retry count?     `retry_count` of an entry before its first retry: 1 in exq, else
--                                 0
-- @when    queue                  import from a foreign queue
-- @arg     queue    string
-- @arg     side     string        the end of the list to take from: left or right
-- @arg     count    count
-- @when    schedule               import scheduled entries
-- @arg     offset   count         number of entries to skip: those of other queues, seen before
-- @arg     count    count
-- @rest    queues   string        import only from these foreign queues; none: from all
-- @when    retry                  import entries that wait for a retry
-- @arg     offset   count
-- @arg     count    count
-- @rest    queues   string
-- @when    queues                 list the foreign queues
-- @when    dead                   list the nodes of exq whose heartbeats have stopped
-- @when    backup                 import what a node of exq took from its queues and didn't finish
-- @arg     node     string
-- @arg     count    count
-- @rest    queues   string

if word == 'queues' then
  return json.texts(redis.call('SRANDMEMBER', keys.foreign_queues(prefix), constants.MAX_BATCH))
end
local source = {prefix = prefix, into = into, now = now, first_retry = first_retry or 0}
if word == 'dead' then return foreign_import.list_dead_nodes(source) end
if word == 'backup' then return foreign_import.take_from_backups(source, node, queues, count) end
if word == 'queue' then return foreign_import.take_from_list(source, queue, side, count) end
return foreign_import.take_from_sorted_set(source, word, offset, count, queues)
