-- clear: cancel jobs of a queue by state, a bounded number per call, with their dependents.
--
-- A job stays if a job outside of the selected states or queue depends on it.
--
-- @key     queue    queue
-- @arg     state    string        waiting, scheduled, depends or failed: the list that this call
--                                 reads
-- @arg     offset   count         number of jobs to skip: 0, then what the last call returned
-- @arg     now      time
-- @rest    states   string        all states to cancel jobs in, dependents included
-- @option  group    string        the failure group to read, for the state failed
-- @option  dry_run  count         1: change nothing
-- @option  actor    name          who cancels, for the archive
-- @flags   allow-oom
-- @role    dashboard
-- @durable
-- @returns json                   {canceled, kept: [[jid, jid of a dependent]], offset: null at the
--                                 end}
-- @raises

return bulk_cancel.run({
  queue = queue, state = state, group = group,
  states = bulk_cancel.parse_states(state, states, group), dry_run = dry_run == 1, now = now,
  actor = actor,
},
  offset)
