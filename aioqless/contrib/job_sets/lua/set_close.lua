-- set_close: close a job set: from now on only its running members add others.
--
-- @arg     set_name name          the set is created if it is new
-- @arg     now      time
-- @option  then_put job_json      as of set_put
-- @option  when_ended job_json
-- @option  callbacks text
-- @flags   allow-oom
-- @role    producer
-- @durable
-- @raises  BADSTATE

job_sets.check(set_name, callbacks)
job_sets.close(
  job_sets.open(set_name, {['then'] = then_put, when_ended = when_ended}, callbacks, now), now)
