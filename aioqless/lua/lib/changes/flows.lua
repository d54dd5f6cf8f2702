-- flows: workflows, of which all jobs are put, or none.

-- Check the jobs of a batch, which `each` reads. Return what to put of each, and the reply: the
-- jids; or an empty text and the jid of the job that is there, and nothing is put.
function flows.read(each, now)
  local flow = {}
  local ahead = {}  -- the number of this call's earlier jobs by queue, not put yet
  local known, claimed, kept = {}, {}, nil  -- the jids of this call's earlier jobs
  local checked = each(function(queue, jid, klass, data, delay, options)
    if options.if_dependency_fails then policies.check(options.if_dependency_fails) end
    dependency.check_not_itself(jid, options.depends or {})
    if options.missing then dependency.check_missing(options.missing, options.depends, known) end
    if options.constraints then
      kept = kept
        or stored_constraints.find_conflict_of_flow(options.constraints, jid, claimed, now)
    end
    if redis.call('SCARD', keys.dependencies(jid)) > constants.MAX_BATCH then
      errors.bad_argument('jid', jid, 'has too many dependencies to be put again')
    end
    max_length.check(queue, jid, ahead[queue])
    ahead[queue] = (ahead[queue] or 0) + 1
    known[jid] = true
    local put = {
      queue = queue, jid = jid, klass = klass, data = data, now = now + #flow * 0.000001,
      delay = delay or 0,
    }
    flow[#flow + 1] = {put = put, options = options}
    return jid
  end)
  for _, answer in ipairs(checked) do
    if type(answer) == 'table' then error(answer) end
  end
  if kept then return {}, {'', kept} end
  return flow, checked
end
