"""Commands that extensions add to the command line.

They stand apart from the extensions' folders, since `aioqless --help` lists all commands also where
an extra isn't installed: the extension itself is imported when its command runs.
"""

# The commands of each module of this package.
COMMANDS = {
    "dashboard": "web web-user",
    "foreign_queues": "intake",
    "lake.archive": "pipeline",
    "lake.put": "pipeline",
    "lake.tables": "pipeline",
    "outbox": "outbox",
    "private_redis": "redis",
}
