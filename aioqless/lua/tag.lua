-- tag: add tags to a job or remove them; find jobs by tag.
--
-- @when    add                    add tags to a job
-- @arg     jid      string
-- @arg     now      time
-- @rest    tags     name
-- @returns texts                  all tags of the job
-- @when    remove                 remove tags of a job
-- @arg     jid      string
-- @arg     now      time
-- @rest    tags     string
-- @returns texts                  all tags of the job
-- @when    get                    find jobs by tag
-- @arg     tag      string
-- @arg     offset   count?
-- @arg     count    count?        at most 1,000; 25 unless given
-- @returns json                   {total, jobs: [jid]}, by when they got the tag
-- @when    top                    list the tags of two jobs or more
-- @arg     offset   count?
-- @arg     count    count?
-- @returns json                   tags of two jobs or more, most used first
-- @flags   allow-oom
-- @role    producer
-- @durable
-- @raises  NOJOB

if word == 'add' then return tagging.add(record.require(jid), tags, now) end
if word == 'remove' then return tagging.remove(record.require(jid), tags) end
offset, count = offset or 0, math.min(count or 25, constants.MAX_BATCH)
if word == 'top' then
  return json.texts(listing.read_page(keys.tags(), 0, redis.call('ZCOUNT', keys.tags(), 2, '+inf'),
    offset, count, 'REV'))
end
local jids = listing.read_page(keys.tag(tag), 0, math.huge, offset, count)
return '{"total":' .. redis.call('ZCARD', keys.tag(tag)) .. ',"jobs":' .. json.texts(jids) .. '}'
