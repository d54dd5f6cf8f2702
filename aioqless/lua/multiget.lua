-- multiget: several jobs, in the order of their jids; unknown ones are left out.
--
-- @rest    jids     string
-- @flags   no-writes
-- @role    producer
-- @returns json                   a list of jobs

return view.encode_many(jids)
