-- tagging: which jobs have a tag, and how many.

local MOST = 1000

function tagging.attach(jid, list, now)
  for _, tag in ipairs(list) do
    redis.call('ZADD', keys.tag(tag), now, jid)
    redis.call('ZINCRBY', keys.tags(), 1, tag)
  end
end

-- A tag without jobs is not counted: there may be as many tags as there ever were jobs.
function tagging.detach(jid, list)
  for _, tag in ipairs(list) do
    redis.call('ZREM', keys.tag(tag), jid)
    if tonumber(redis.call('ZINCRBY', keys.tags(), -1, tag)) <= 0 then
      redis.call('ZREM', keys.tags(), tag)
    end
  end
end

-- Add the tags that a job doesn't have; return all its tags.
function tagging.add(job, list, now)
  local has, new, seen = json.parse_texts(job.tags), {}, {}
  for _, tag in ipairs(has) do seen[tag] = true end
  for _, tag in ipairs(list) do
    if not seen[tag] then
      seen[tag] = true
      has[#has + 1] = tag
      new[#new + 1] = tag
    end
  end
  if #new > 0 then
    if #has > MOST then
      errors.bad_argument('tags', new[#new],
        'exceeds the maximum number of tags of a job: ' .. MOST)
    end
    record.set_fields(job.jid, 'tags', json.texts(has))
    tagging.attach(job.jid, new, now)
  end
  return has
end

function tagging.remove(job, list)
  local gone, kept, dropped = {}, {}, {}
  for _, tag in ipairs(list) do gone[tag] = true end
  for _, tag in ipairs(json.parse_texts(job.tags)) do
    local into = gone[tag] and dropped or kept
    into[#into + 1] = tag
  end
  if #dropped > 0 then
    record.set_fields(job.jid, 'tags', json.texts(kept))
    tagging.detach(job.jid, dropped)
  end
  return kept
end
