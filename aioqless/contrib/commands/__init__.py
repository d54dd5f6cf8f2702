"""Commands that extensions add to the command line.

They stand apart from the extensions' folders, since `aioqless --help` lists all commands also where
an extra isn't installed: the extension itself is imported when its command runs.
"""

# Section of the help -> command -> its modules in this package.
COMMANDS = {
    "Serve": {
        "web": "dashboard",
        "web-user": "dashboard",
        "intake": "foreign_queues",
        "outbox": "outbox",
        "pipeline": "lake.archive lake.put lake.tables",
    },
    "Keep": {"redis": "private_redis"},
}
