-- reviving: a failed job, out of its group by now, comes into a queue again. (Registering the queue is the caller's part.)

function reviving.place(job, queue, now)
  if archive.is_on() then missed.append(job) end
  history.append(job.jid, job, now, 'put', cjson.encode({q = queue}))
  record.clear(job.jid, 'x-lost', 'x-start-by')
  local state = putting.place(job.jid, queue, job.priority, 0, now, false)
  record.set(job.jid, 'state', state, 'worker', '', 'expires', 0, 'queue', queue, 'remaining', job.retries, 'time', record.time(now))
  if job.terms then clauses.take(job.jid, nil, clauses.read(job.terms), job.terms, now) end
end
