-- intake: what clients of sidekiq, exq and resque pushed becomes jobs of ours, each in one step. An entry that can't be is put aside.
--
-- @returns json                   {taken, passed, refused: [{why, source, jid}], more: whether to call again}, or the names
-- @arg     prefix   text          what the keys there begin with
-- @arg     into     text          what the names of our queues begin with, before that of the queue there
-- @arg     now      time
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

if word == 'queues' then return json.texts(redis.call('SRANDMEMBER', keys.foreign_queues(prefix), 1000)) end
if word == 'queue' then return arrivals.of_list(prefix, into .. queue, queue, now, side, count) end
return arrivals.of_sorted(keys.foreign_sorted(prefix, word), into, now, offset, count, queues)
