-- keys: every key and channel of a namespace, spelled once.  H hash, L list, S set, Z sorted set, T text.
-- Each is one line of a function's, since the composer writes it out where it is used.
-- All but the last group belong to live qless clients too.

function keys.job(jid) return ns .. ':j:' .. jid end                           -- H a job
function keys.history(jid) return ns .. ':j:' .. jid .. '-history' end         -- L its events, oldest first
function keys.dependencies(jid) return ns .. ':j:' .. jid .. '-dependencies' end -- S jids it waits for
function keys.dependents(jid) return ns .. ':j:' .. jid .. '-dependents' end   -- S jids that wait for it
function keys.template(jid) return ns .. ':r:' .. jid end                      -- H a recurring job

function keys.queues() return ns .. ':queues' end                              -- Z known queues by when they were first seen
function keys.paused() return ns .. ':paused_queues' end                       -- S names of paused queues
function keys.waiting(queue) return ns .. ':q:' .. queue .. '-work' end           -- Z waiting jobs by precedence, highest first
function keys.scheduled(queue) return ns .. ':q:' .. queue .. '-scheduled' end -- Z delayed jobs by when they become due
function keys.locks(queue) return ns .. ':q:' .. queue .. '-locks' end         -- Z running jobs by when their lock expires
function keys.depends(queue) return ns .. ':q:' .. queue .. '-depends' end     -- Z jobs held by dependencies by when they were put
function keys.recurring(queue) return ns .. ':q:' .. queue .. '-recur' end         -- Z templates by when their next instance is due

function keys.workers() return ns .. ':workers' end                            -- Z known workers by when they were last seen
function keys.worker_jobs(worker) return ns .. ':w:' .. worker .. ':jobs' end         -- Z jobs it holds by when their lock expires

function keys.completed() return ns .. ':completed' end                        -- Z completed jobs by when they completed
function keys.failures() return ns .. ':failures' end                          -- S failure groups that aren't empty
function keys.group(group) return ns .. ':f:' .. group end                     -- L jids failed in it, newest at the head
function keys.tracked() return ns .. ':tracked' end                            -- Z tracked jids by since when
function keys.tag(tag) return ns .. ':t:' .. tag end                           -- Z jids with the tag by when it was attached
function keys.tags() return ns .. ':tags' end                                  -- Z tags by how many jobs have them
function keys.config() return ns .. ':config' end                              -- H configuration that differs from the defaults
function keys.stats(kind, day, queue) return ns .. ':s:' .. kind .. ':' .. string.format('%.14g', day) .. ':' .. queue end
-- H `wait` and `run`: total, mean, vk and the histogram; `stats`: retries (lost locks), failures, failed, and of ours x-retries (explicit ones)

function keys.log_channel() return ns .. ':log' end                                    -- channel: what happens, as JSON
function keys.worker_channel(worker) return ns .. ':w:' .. worker end                  -- channel: what a worker's runs must hear of
function keys.event_channel(name) return ns .. ':' .. name end                         -- channel: jids of tracked jobs, by event

-- Ours alone, below one reserved prefix; peers never need them to work a job.  Fields of ours in a job's hash:
--   x-fence     the number of its latest pop
--   x-put       its `time` before that pop
--   x-context   texts by name that travel with it
--   x-start-by  when a worker that gets it is too late
--   x-after     the jids it was put to wait for
--   x-on-failed what becomes of it when one of these fails
--   x-cascade   that it matters to somebody when it fails
--   x-progress  how far its run says to be
--   x-lost      how often its lock was lost since it came into its queue
--   x-terms     what it is alone in, and how many of its kind may run
--   x-runs      its earlier runs in this stage, while an archive is kept
--   x-archived  the `time` it had when its end was archived
--   x-reserved  the run that is a person's: its fence and its worker
-- and in a template's:
--   x-coalesce  what was missed counts once
--   x-paused    since when it is
--   x-declared  when code last declared it
--   x-terms     its instances'
-- and in a day's statistics:
--   x-retries   explicit retries
--   x-ms        x-ms0 to x-ms500: waits or runs of less than a second
function keys.fence() return ns .. ':x:fence' end                              -- T the number of the latest pop; never expires
function keys.request(id) return ns .. ':x:request:' .. id end                 -- T a caller's latest request and its answer; expires
function keys.deferred() return ns .. ':x:todo' end                                -- S notes on upkeep left for later calls
function keys.deferred_jids(note) return ns .. ':x:left:' .. note end                   -- S the jids that such a note is about
function keys.stats_days() return ns .. ':x:days' end                                -- Z queues by the first day that may have statistics
function keys.histogram_days() return ns .. ':x:histograms' end                    -- Z queues by the first day that may have histograms
function keys.cron(jid) return ns .. ':x:cron:' .. jid end                     -- H a recurring job with a cron expression
function keys.ticks() return ns .. ':x:ticks' end                              -- Z such jobs by when their next instance is due
function keys.declarations() return ns .. ':x:declared' end                        -- H which contents of Redis code declared jobs into, how often
function keys.paused_recurring() return ns .. ':x:resting' end                          -- Z paused templates by since when
function keys.ticks_channel() return ns .. ':x:retimed' end                          -- channel: `x:ticks` has an earlier first entry, or `x:fallen` has some
function keys.deferred_failures() return ns .. ':x:fallen' end                            -- S such notes on what failures come to
function keys.retention_rules() return ns .. ':x:rules' end                              -- S options that say how long ended jobs of a queue or klass are kept
function keys.failed_expiry() return ns .. ':x:outdated' end                        -- Z failed jobs by when they are to go, where a rule says so
function keys.result(jid) return ns .. ':x:result:' .. jid end                 -- T what a job's handler returned, behind the number of its run; expires
function keys.name_lease(worker) return ns .. ':x:incarnation:' .. worker end  -- H which process has a stable name; expires
function keys.unique(key) return ns .. ':x:unique:' .. key end                 -- T when it ends by itself, if ever, and the jid that has a key alone
function keys.limit_running(key) return ns .. ':x:holding:' .. key end               -- Z running jobs of a key by when they are to be looked at again
function keys.held_back(key) return ns .. ':x:held:' .. key end                -- Z jobs held back in `-scheduled` by their place in `-work`
function keys.rate_starts(of) return ns .. ':x:starts:' .. of end                   -- Z what of a key (`k:`) or queue (`q:`) started, by when; expires
function keys.skipped(person) return ns .. ':x:skipped:' .. person end          -- Z jids that a person skipped, by when; expires
function keys.ready_channel() return ns .. ':x:ready' end                              -- channel: names of queues that have work again
function keys.reply_channel(id) return ns .. ':x:answer:' .. id end                   -- channel: what came of an order to a worker
function keys.import_counter() return ns .. ':x:intaken' end                          -- T how many jobs of other systems came without a jid
function keys.audit_log() return ns .. ':x:trail' end                              -- stream of what people did; bounded
function keys.logins() return ns .. ':x:logins' end                            -- stream of who logged in and out, or was refused; bounded
function keys.session(id) return ns .. ':x:session:' .. id end                 -- T what an open session depends on, as a digest; expires
function keys.rejected_imports() return ns .. ':x:refused' end                          -- L what another system's clients pushed and can't be a job, as JSON
function keys.archive() return ns .. ':x:archive' end                          -- stream: what ended, where shared config says so
function keys.archive_reader() return ns .. ':x:archive:read' end                -- H who keeps it elsewhere, and up to which entry

-- Another system's, outside of the namespace. `prefix` is empty or ends in a colon.
function keys.foreign_queues(prefix) return prefix .. 'queues' end             -- S names of its queues
function keys.foreign_queue(prefix, queue) return prefix .. 'queue:' .. queue end -- L what waits in one
function keys.foreign_backup(prefix, node, queue) return prefix .. 'queue:backup::' .. node .. '::' .. queue end -- L what a node of exq took and hasn't ended
function keys.foreign_heartbeats(prefix) return prefix .. 'heartbeats' end     -- Z nodes of exq by their latest heartbeat
function keys.foreign_node(prefix, node) return prefix .. node end             -- H what a node of exq says of itself; expires after a minute
function keys.foreign_sorted(prefix, name) return prefix .. name end           -- Z `schedule`, `retry`: entries by when they are due
