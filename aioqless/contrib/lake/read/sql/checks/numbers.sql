-- The numbers of entries that are missing were lost or erased.
SELECT last AS expected, known + lost + erased AS found
FROM archived, (
    SELECT count(DISTINCT ordinal) AS known
    FROM (SELECT ordinal FROM events UNION ALL SELECT ordinal FROM unreadable), archived
    WHERE ordinal <= last
)
-- The last entry may be among the erased ones.
WHERE NOT is_pruned AND last - known - lost NOT BETWEEN 0 AND erased
