-- keys: those of metrics; those of the core are in aioqless/lua/lib/base/keys.lua.

-- Z series, `length:queue:klass`, by when they were last added to
function keys.series() return ns .. ':x:series' end
-- L what ran in each period of this length in seconds, oldest first; expires
function keys.periods(seconds, series) return ns .. ':x:periods:' .. seconds .. ':' .. series end
-- T the id of the latest report of a process; expires
function keys.process_report(process) return ns .. ':x:process-report:' .. process end
-- T what a worker is, as JSON; expires
function keys.worker_facts(worker) return ns .. ':x:worker-facts:' .. worker end
-- L the memory and the busy slots of a worker by minute, oldest first; expires
function keys.worker_history(worker) return ns .. ':x:worker-history:' .. worker end
-- L deploy marks as JSON, newest first
function keys.marks() return ns .. ':x:marks' end
-- Z versions of the application by when a worker last reported them
function keys.versions() return ns .. ':x:versions' end
