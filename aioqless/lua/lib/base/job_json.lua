-- job_json: a job to be put later, as a JSON object of strings: its queue, klass and data, and
-- options of put. Failures, ends of job sets and calls put such jobs.

-- Check an argument of this type.
function job_json.check(_, value)
  return job_json.parse(value) and value
end

-- Return what to put and its options; refuse what could not be put later.
function job_json.parse(text)
  local job = json.parse_object(text)
  for name, value in pairs(job) do
    if type(value) ~= 'string' then
      errors.bad_argument('on_failure', text, 'has a member that is not a string: ' .. name)
    end
  end
  local put = {
    queue = args.name('queue', job.queue), klass = args.name('klass', job.klass),
    data = args.data('data', job.data), delay = args.seconds('delay', job.delay or '0'),
  }
  local options = {
    priority = job.priority and args.priority('priority', job.priority),
    tags = job.tags and args.tags('tags', job.tags),
    retries = job.retries and args.count('retries', job.retries),
    expires_in = job.expires_in and args.seconds('expires_in', job.expires_in),
    context = job.context and args.object('context', job.context),
    constraints = job.constraints and args.object('constraints', job.constraints),
  }
  if job.constraints and job_constraints.parse(job.constraints).if_exists then
    errors.bad_argument('on_failure', text, 'must not have if_exists')
  end
  return put, options
end
