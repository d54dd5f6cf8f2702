-- recur: templates that put an instance of themselves whenever an interval has passed.
--
-- @when    on
-- @arg     queue    name
-- @arg     jid      jid
-- @arg     klass    name
-- @arg     data     data
-- @arg     now      time
-- @literal interval
-- @arg     interval interval      seconds from one instance to the next
-- @arg     offset   seconds       until the first
-- @option  priority priority
-- @option  tags     tags
-- @option  retries  count         default 5
-- @option  backlog  count         how many missed instances to make up for, 0: all; absent: one for all that were missed
-- @returns text                   the jid
-- @when    off
-- @arg     jid      string
-- @returns number                 1
-- @when    get
-- @arg     jid      string
-- @returns json                   the template; nil when there is none
-- @when    update
-- @arg     jid      string
-- @rest    pairs    text          names and values of: priority retries interval data klass queue backlog
-- @returns number                 1
-- @when    tag
-- @arg     jid      string
-- @rest    tags     name
-- @returns list                   all tags of the template
-- @when    untag
-- @arg     jid      string
-- @rest    tags     string
-- @returns list                   all tags of the template
-- @raises  NOJOB

if word == 'on' then
  return templates.on({
    queue = queue, jid = jid, klass = klass, data = data, now = now, interval = interval, offset = offset,
    priority = priority, tags = tags, retries = retries, backlog = backlog,
  })
end
if word == 'off' then return templates.off(jid) end
if word == 'get' then return templates.view(jid) end
if word == 'update' then return templates.update(jid, pairs) end
if word == 'tag' then return templates.tag(jid, tags) end
return templates.untag(jid, tags)
