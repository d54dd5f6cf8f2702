-- constants: values that several libraries use, or Python as well (aioqless/lua/__init__.py).
-- The linker writes `constants.NAME` out as its value.

local MAX_NAME_LENGTH = 512    -- bytes
local JID_DIGITS = 24          -- hexadecimal digits of a generated jid
local MAX_DATA_DEPTH = 900     -- nesting of a job's data; cjson parses 1,000 levels
local MAX_BATCH = 1000         -- entries of a list, a batch or a page in one call
local MAX_PRIORITY = 100       -- beyond it, scores are too coarse for the order of puts
local MAX_CONCURRENCY = 1000    -- running jobs of a key with a concurrency limit
local CLOCK_TOLERANCE = 600   -- seconds by which the clock may go back unnoticed by schedules
local MAX_RATE_STARTS = 10000  -- starts of a rate limit
local MAX_RATE_COST = 1000000000  -- what the starts of a rate limit with costs cost
local MAX_LIMITS = 4           -- limits of a job
local DAY = 86400              -- seconds
local MAX_DUE = 100            -- due jobs in an answer of `tick`
local DEFAULT_RETRIES = 5
-- Unless configured:
local HEARTBEAT = 60           -- seconds for which a lock lasts
local JOB_HISTORY = 100        -- events of a job that are kept
local JOBS_HISTORY = 604800    -- seconds for which a completed job is kept
local JOBS_HISTORY_COUNT = 50000  -- completed jobs that are kept
local MAX_WORKER_AGE = 86400   -- seconds for which a silent worker is known
local ANSWER_TTL = 120         -- seconds for which the answer to a request is kept
local PRUNED_EVERY = 50        -- completions of a queue after which old entries are deleted
local EXHAUSTED_GROUP = 'failed-retries-'  -- and the queue: jobs without retries or locks left
local REVIEW_INTERVAL = 20     -- seconds between two looks at what other qless clients have done
local WORKER_TIMEOUT = 15      -- seconds without a beat after which a worker is gone; at least 15
