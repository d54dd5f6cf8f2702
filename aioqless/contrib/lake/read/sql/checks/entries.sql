-- Every entry is in the lake once, as an event or rejected.
SELECT count(DISTINCT ordinal) AS expected, count(*) AS found
FROM (
    SELECT ordinal FROM events
    UNION ALL
    SELECT DISTINCT ordinal FROM unreadable WHERE ordinal IS NOT NULL
)
HAVING expected <> found
