-- output_entries: the entries of keys.output, whose ids are `generation-number`. A generation is
-- the fence of the run that began the output; a number, how many values it has up to here. So each
-- value has an id of its own, by which readers see that values are missing, and that a run began.
-- Fields: `run`, the fence of the run and how many values it has emitted; `size`, of all entries of
-- the generation in bytes; `values`, a JSON array.

local MOST_BYTES = 8388608
local BYTES_PER_ENTRY = 64
local RUN, SIZE, VALUES = 2, 4, 6

-- Append values to the output of a job. A call that is sent again appends nothing. Without values
-- it notes how many there were, if Redis lacks the last ones.
function output_entries.append(job, start, count, values, ttl, keep)
  local key, generation, number, done, size = keys.output(job.jid), job.fence, 0, 0, 0
  local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  if last then
    local fence, emitted = string.match(last[2][RUN], '^(%d+):(%d+)$')
    if fence == job.fence or keep then
      generation, number = string.match(last[1], '^(%d+)%-(%d+)$')
      number, size = tonumber(number), tonumber(last[2][SIZE])
    else
      redis.call('UNLINK', key)
    end
    if fence == job.fence then done = tonumber(emitted) end
  end
  if start < done or start + count == done then return end
  number, size = number + start - done + count, size + #values + BYTES_PER_ENTRY
  redis.call('XADD', key, string.format('%s-%d', generation, number),
    'run', string.format('%s:%d', job.fence, start + count), 'size', string.format('%d', size),
    'values', values)
  if size > MOST_BYTES then output_entries.trim(key, size) end
  redis.call('EXPIRE', key, ttl)
end

-- Delete the oldest entries, until the others have at most MOST_BYTES.
function output_entries.trim(key, size)
  local length = redis.call('XLEN', key)
  local first = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
  while length > 1 and size - tonumber(first[2][SIZE]) > MOST_BYTES do
    length = math.floor(length * 7 / 8)
    redis.call('XTRIM', key, 'MAXLEN', length)
    first = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
  end
end

function output_entries.values(entry) return entry[2][VALUES] end

-- Wake the readers of these jobs' output.
function output_entries.wake_readers(jids)
  redis.call('PUBLISH', keys.output_channel(), table.concat(jids, '\n'))
end
