"""The names and values that generated calls use."""

import json

JIDS = ["j1", "j2", "j3", "j4", 'j"5"\\ ', "r1-1"]
TEMPLATES = ["r1", "r2"]
INSTANCES = ["r1-1", "r1-2", "r2-1"]
QUEUES = ["a", "b: \u00e9"]
WORKERS = ["w1", 'w"2\\-\u00fc']
PERSONS = [WORKERS[0], "p \u00e9"]  # the first is also the name of a machine
SESSIONS = [*PERSONS, *(f"{person}@{session}" for person in PERSONS for session in (1, 2))]
LIMITS = [60, 1, 3600, 86400]
TAGS = ["t1", "t2", 't"\\\u00df']
GROUPS = ["g1", 'g: "2" \u20ac']
MESSAGE = 'no luck:\n\t"\u00e9\\" \x00'
DATA = [
    "{}",
    "[]",
    '{"n": 12345678901234567, "e": [], "f": 1.0}',
    '"h\u00e9\\u0000"',
    "null",
    " [1,\n {} ] ",
    "0",
]
TAG_LISTS = [json.dumps(tags) for tags in ([], TAGS[:1], TAGS[1::-1], [TAGS[2], TAGS[2]], TAGS)]
STARTS = [0, 86390.5, 1353000060, 1700000000.5]
STEPS = [0.5, 1, 9.5, 10, 30, 60, 61, 3600, 43200, 86400]
LONGEST_LIFE = 5 * 86400  # statistics are pruned after a week; the model has no pruning
OPTIONS = {
    "heartbeat": ["1", "30", "0.5", "-1"],
    "a-heartbeat": ["5", "100"],
    f"heartbeat-{QUEUES[1]}": ["7"],
    "heartbeat-a": ["8"],
    "grace-period": ["0", "3", "100", "-5"],
    "jobs-history": ["0", "-1", "100"],
    "jobs-history-count": ["0", "1", "2"],
    "a-max-concurrency": ["0", "1", "2"],
    "max-job-history": ["0", "1", "2", "3", "5"],
    "max-worker-age": ["60", "3600"],
    "max-lost": ["0", "1", "-1", "2.5"],
    "application": ["somebody's"],
}
CHANGES = [
    *(
        ("priority", -7),
        ("retries", 1),
        ("interval", 30),
        ("interval", 7200),
        ("data", "[]"),
        ("klass", "S"),
    ),
    *(("queue", "a"), ("queue", QUEUES[1]), ("backlog", 2), ("backlog", 0), ("colour", "red")),
]

QUEUED = ["waiting", "scheduled", "depends", "stalled"]
AT_WORK = [*QUEUED, "running"]
ALL_STATES = [*AT_WORK, "failed", "complete"]
