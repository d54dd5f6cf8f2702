-- ready: until when a pop from these queues would bring nothing unless something is put.
--
-- @keys    queues
-- @arg     now      time?         default: this server's
-- @flags   no-writes
-- @role    worker
-- @returns text                   when jobs or notes (lib/facts/notes.lua) are due, of Redis' time;
--                                 if that is past or 0, a pop may bring jobs now; '': nothing is in
--                                 sight

return rotation.find_ready(queues, now)
