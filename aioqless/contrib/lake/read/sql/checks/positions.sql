-- Every table has the last event.
SELECT name, last AS expected, ordinal AS found
FROM refreshed, archived
WHERE ordinal < last OR (ordinal > last AND erased = 0)
