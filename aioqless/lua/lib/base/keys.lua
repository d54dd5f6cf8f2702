-- keys: all keys and channels of a namespace. H hash, L list, S set, Z sorted set, T text.
-- Each function is one expression, which the linker writes out where it is used. An extension has
-- its own in contrib/NAME/lua/lib/keys.lua.
-- All but the last group belong to live qless clients, too.

-- H a job
function keys.job(jid) return ns .. ':j:' .. jid end
-- L a job's events, oldest first
function keys.history(jid) return ns .. ':j:' .. jid .. '-history' end
-- S the jids that a job waits for
function keys.dependencies(jid) return ns .. ':j:' .. jid .. '-dependencies' end
-- S the jids that wait for a job
function keys.dependents(jid) return ns .. ':j:' .. jid .. '-dependents' end
-- H a recurring job with an interval
function keys.template(jid) return ns .. ':r:' .. jid end

-- Z known queues by when they were first seen
function keys.queues() return ns .. ':queues' end
-- S names of paused queues
function keys.paused() return ns .. ':paused_queues' end
-- Z waiting jobs by priority score, highest first
function keys.waiting(queue) return ns .. ':q:' .. queue .. '-work' end
-- Z delayed jobs by when they become due
function keys.scheduled(queue) return ns .. ':q:' .. queue .. '-scheduled' end
-- Z running jobs by when their lock expires
function keys.locks(queue) return ns .. ':q:' .. queue .. '-locks' end
-- Z jobs held by dependencies by when they were put
function keys.depends(queue) return ns .. ':q:' .. queue .. '-depends' end
-- Z recurring jobs with an interval by when their next instance is due
function keys.recurring(queue) return ns .. ':q:' .. queue .. '-recur' end

-- Z known workers by when they were last seen
function keys.workers() return ns .. ':workers' end
-- Z a worker's jobs by when their lock expires
function keys.worker_jobs(worker) return ns .. ':w:' .. worker .. ':jobs' end

-- Z completed jobs by when they completed
function keys.completed() return ns .. ':completed' end
-- S failure groups that aren't empty
function keys.failures() return ns .. ':failures' end
-- L jids that failed in a group, newest at the head
function keys.group(group) return ns .. ':f:' .. group end
-- Z tracked jids by since when
function keys.tracked() return ns .. ':tracked' end
-- Z jids with a tag by when it was attached
function keys.tag(tag) return ns .. ':t:' .. tag end
-- Z tags by the number of jobs that have them
function keys.tags() return ns .. ':tags' end
-- H configuration that differs from the defaults
function keys.config() return ns .. ':config' end
-- H a day's statistics of a queue, by kind: `wait` and `run` hold total, mean, vk, histogram;
-- `stats` holds retries (lost locks), failures, failed, and our x-retries (explicit ones)
function keys.stats(kind, day, queue)
  return ns .. ':s:' .. kind .. ':' .. string.format('%d', day) .. ':' .. queue
end

-- channel: all events, as JSON
function keys.log_channel() return ns .. ':log' end
-- channel: lost locks, cancellations and remote-control commands for a worker
function keys.worker_channel(worker) return ns .. ':w:' .. worker end
-- channel: jids of tracked jobs, by event
function keys.event_channel(name) return ns .. ':' .. name end

-- Our own keys, below one reserved prefix; other qless clients work without them. Our fields in a
-- job's hash:
--   x-fence     the fencing token of its latest run
--   x-put       its `time` before the latest pop
--   x-due       with a delay, if the archive is on: the `time` of the put, and when it is due
--   x-version   if the archive is on: the fence of its latest run, and the version of the code
--   x-context   strings by name that travel with it
--   x-expiry    when it expires unless it has started
--   x-after     the jids that it was put to wait for
--   x-if-dependency-fails  what happens to it if a dependency fails
--   x-cascade   1: a dependent has such a policy; 2: also `run`, directly or through others
--   x-on-failure the job that its failure puts, as JSON
--   x-failures  how often it has failed since that matters, and its `time` at the latest
--   x-cause     the failure that it was put for, as JSON
--   x-progress  the progress of its run
--   x-lost      the number of locks lost since it was put into its queue
--   x-declined  since when workers without a handler for its klass have declined it
--   x-constraints     its job set, uniqueness, limits, tenant, bulk and results
--   x-first-put with a debounce: when the first of the puts was that are this job
--   x-follow-up with a debounce: the job that runs after it
--   x-held      since when limits have held it back
--   x-bulk      the jid of the job that its latest pop took it along with
--   x-turn      its turn among those of its tenant, and since when it has been ready
--   x-runs      its earlier runs in this stage, if the archive is on
--   x-archived  the `time` it had when its end was archived
--   x-reserved  the fence and worker of a run that a person has reserved
--   x-steps     its runs have stored steps
--   x-calls     the number of its latest child
--   x-parent    the job that has called it, and the name of the call
--   x-parked    the fence of the run that parked it, and what it waits for
-- in a recurring job's:
--   x-coalesce  missed instances are coalesced into one
--   x-paused    since when it is paused
--   x-was-due   when it was due then
--   x-first     with an interval: when its first run is due, if later than an interval; else 0
--   x-until     when it ends
--   x-max-runs  the number of instances after which it ends
--   x-jitter    the maximum delay of an instance
--   x-expires-in  the time after it is due in which an instance must start
--   x-uncounted how many of its count are no instances of its schedule
--   x-ended     since when it has ended
--   x-declared  when code last declared it
--   x-constraints     those of its instances
-- and in a day's statistics:
--   x-retries   explicit retries
-- T the number of the latest pop; never expires
function keys.fence() return ns .. ':x:fence' end
-- T a caller's latest request and its answer; expires
function keys.request(id) return ns .. ':x:request:' .. id end
-- Z what follows from changes for other jobs (lib/facts/notes.lua), and what is reviewed since
-- other clients may change it (lib/agenda/review.lua), as JSON, by when it is due
function keys.agenda() return ns .. ':x:agenda' end
-- S the jids that such a note is about, if they may be many
function keys.noted_jids(of) return ns .. ':x:noted-jids:' .. of end
-- T how far the deletion of old statistics has come, as JSON
function keys.old_statistics() return ns .. ':x:old-statistics' end
-- H a recurring job with a cron expression
function keys.cron(jid) return ns .. ':x:cron:' .. jid end
-- Z such jobs by when their next instance is due
function keys.ticks() return ns .. ':x:ticks' end
-- H the id of Redis' contents, and how often code has declared recurring jobs
function keys.declarations() return ns .. ':x:declarations' end
-- Z paused and ended recurring jobs by since when
function keys.paused_recurring() return ns .. ':x:paused-recurring' end
-- channel: `x:ticks` has an earlier first entry, or `x:agenda` has more to do
function keys.ticks_channel() return ns .. ':x:ticks-changed' end
-- S dependencies that can't complete: they have failed, or failed ones hold them
function keys.stuck(jid) return ns .. ':x:stuck:' .. jid end
-- H by klass: since when its handler has declared what its failures put, and that as JSON; of the
-- empty klass, as JSON: since when failures matter, and how far their review has come
function keys.on_failure() return ns .. ':x:on-failure' end
-- S options that set the retention of a queue's or klass' ended jobs
function keys.retention_rules() return ns .. ':x:retention-rules' end
-- Z job sets, by name, with their numbers
function keys.sets() return ns .. ':x:sets' end
-- T the number of the latest job set
function keys.set_number() return ns .. ':x:set-number' end
-- H a job set: name, created, closed, added, touched, review; what its end puts, until it is put
function keys.set(set) return ns .. ':x:set:' .. set end
-- S members of a job set that are open, held, failed or canceled, or that have results
function keys.members(set, place) return ns .. ':x:set:' .. set .. ':' .. place end
-- T a handler's result, behind the fence of its run; expires, unless others are to take it
function keys.result(jid) return ns .. ':x:result:' .. jid end
-- S the jobs that take a job's result and have not ended
function keys.takers(jid) return ns .. ':x:takers:' .. jid end
-- Z workers by when their latest beat was, until they are gone
function keys.beats() return ns .. ':x:beats' end
-- H of a worker: its process and what that uses, when its latest beat was, since when beats came
-- without a gap, the queues that it serves as JSON, the number of the latest counts with the id of
-- the process, what it used by minute (`minute bytes slots`, a line each), and once it is gone
-- whether its jobs are `released`, or that is only `noted`; expires
function keys.beat(worker) return ns .. ':x:beat:' .. worker end
-- Z series of runs, `length:queue:klass`, by when they were last added to
function keys.series() return ns .. ':x:series' end
-- L what ran in each period of this length in seconds, oldest first; expires
function keys.periods(seconds, series) return ns .. ':x:periods:' .. seconds .. ':' .. series end
-- Z deploy marks and others as JSON, by when they were made, or their version last ran
function keys.marks() return ns .. ':x:marks' end
-- H what a job's runs have stored for later runs, by kind and name: `number time attempt value`
function keys.steps(jid) return ns .. ':x:steps:' .. jid end
-- stream of what a job's runs have emitted; expires
function keys.output(jid) return ns .. ':x:output:' .. jid end
-- Z jobs of a queue that gather for a bulk, by their score in `-work`
function keys.bulk(queue, key) return ns .. ':x:bulk:' .. #queue .. ':' .. queue .. ':' .. key end
-- T when a unique key expires, if ever, and the jid of its holder
function keys.unique(key) return ns .. ':x:unique:' .. key end
-- Z running jobs of a limited key by when they are checked again
function keys.limit_running(key) return ns .. ':x:limit-running:' .. key end
-- Z jobs held back in `-scheduled` by a key's limit, by their score in `-work`
function keys.held_back(key) return ns .. ':x:held-back:' .. key end
-- Z jobs that keep their share of a limit, by their score in `-work`
function keys.overdue(key) return ns .. ':x:overdue:' .. key end
-- T until when a key is paused, and for how long it was; expires
function keys.limit_paused(key) return ns .. ':x:limit-paused:' .. key end
-- Z the next turn of each tenant of a queue by its score in `-work`; also that of new tenants
function keys.turns(queue) return ns .. ':x:turns:' .. queue end
-- Z a tenant's jobs that wait or are held back by their score in `-work`
function keys.tenant(queue, tenant)
  return ns .. ':x:tenant:' .. #queue .. ':' .. queue .. ':' .. tenant
end
-- Z recent starts of a key (`k:`) or queue (`q:`) with a rate limit; expires
function keys.rate_starts(of) return ns .. ':x:rate-starts:' .. of end
-- Z jids that a person skipped, by when; expires
function keys.skipped(person) return ns .. ':x:skipped:' .. person end
-- channel: `+queue` when a queue has work again, `-queue` when a worker has taken all of it
function keys.ready_channel() return ns .. ':x:ready' end
-- channel: jids of jobs that have emitted something
function keys.output_channel() return ns .. ':x:output' end
-- channel: a worker's reply to a remote-control command
function keys.reply_channel(id) return ns .. ':x:reply:' .. id end
-- stream of ended stages of jobs, if the archive is on
function keys.archive() return ns .. ':x:archive' end
-- H who stores the archive elsewhere, and up to which entry
function keys.archive_reader() return ns .. ':x:archive:read' end
-- T the number of partitions that this namespace has, or of which it is one
function keys.partitions() return ns .. ':x:partitions' end
