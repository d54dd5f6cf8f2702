-- ready: for how long a pop from these queues would bring nothing unless something is put.
--
-- @keys    queues
-- @arg     now      time?         default: this server's
-- @flags   no-writes
-- @role    worker
-- @returns text                   seconds, also until notes are due (lib/facts/notes.lua); 0: a pop
--                                 may bring jobs now; '': nothing is in sight

return rotation.find_ready(queues, now)
