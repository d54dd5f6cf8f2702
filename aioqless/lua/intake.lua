-- intake: what clients of sidekiq, exq and resque pushed becomes jobs of ours, each in one step. An entry that can't be is put aside.
--
-- @returns json                   {taken, passed, refused: [{why, source, jid}], more: whether to call again}, or the names
-- @arg     prefix   text          what the keys there begin with
-- @arg     into     text          what the names of our queues begin with, before that of the queue there
-- @arg     now      time
-- @arg     first_retry count?     what `retry_count` says there when the first retry is to come: 1 in exq; default 0
-- @when    queue                  what waits in a queue there
-- @arg     queue    string
-- @arg     side     string        the end of the list that is next: left or right
-- @arg     count    count
-- @when    schedule               what waits for its time
-- @arg     offset   count         how many to pass over: others' jobs that were seen before
-- @arg     count    count
-- @rest    queues   string        only for these queues there; none: for all
-- @when    retry                  what failed there and waits for its retry
-- @arg     offset   count
-- @arg     count    count
-- @rest    queues   string
-- @when    queues                 take nothing, and name the queues there
-- @when    dead                   take nothing, and name the nodes of exq that are dead by its heartbeats
-- @when    backup                 what such a node took from its queues and didn't end
-- @arg     node     string
-- @arg     count    count
-- @rest    queues   string

if word == 'queues' then return json.texts(redis.call('SRANDMEMBER', keys.foreign_queues(prefix), 1000)) end
local source = {prefix = prefix, into = into, now = now, first_retry = first_retry or 0}
if word == 'dead' then return foreign_import.list_dead_nodes(source) end
if word == 'backup' then return foreign_import.take_from_backups(source, node, queues, count) end
if word == 'queue' then return foreign_import.take_from_list(source, queue, side, count) end
return foreign_import.take_from_sorted_set(source, word, offset, count, queues)
