-- multiget: those of the jobs that exist, in the order asked.
--
-- @rest    jids     string
-- @flags   no-writes
-- @returns json                   a list of jobs

return view.encode_many(jids)
