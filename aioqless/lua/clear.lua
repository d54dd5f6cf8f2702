-- clear: cancel a portion of the jobs that a queue has in a state. A job stays while a job that is not to be canceled depends on it.
--
-- @key     queue    queue
-- @arg     state    string        waiting, scheduled, depends or failed: the jobs that this call begins with
-- @arg     offset   count         how many of these jobs to pass over: 0, then what the last call returned
-- @arg     now      time
-- @rest    states   string        all states that are cleared: jobs of the queue in these states go with those that they depend on
-- @option  group    string        the failure group that is read, for the state failed
-- @option  dry_run  count         1: nothing is changed
-- @flags   allow-oom
-- @returns json                   {canceled, kept: [[jid, a jid that depends on it]], offset: null at the end}
-- @raises

return bulk_cancel.run({queue = queue, state = state, group = group, states = bulk_cancel.parse_states(state, states, group), dry_run = dry_run == 1, now = now},
  offset)
