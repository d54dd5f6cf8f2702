"""Commands that extensions add to the command line.

`aioqless --help` lists them also where an extra isn't installed, so they are not in the folders of
their extensions: those are imported when a command runs.
"""

# Section of the help -> command -> its modules in this package.
COMMANDS = {
    "Serve": {
        "web": "dashboard",
        "web-user": "dashboard",
        "intake": "foreign_queues",
        "outbox": "outbox",
        "pipeline": "lake.archive lake.put lake.status lake.tables lake.upkeep",
    },
    "Keep": {"redis": "private_redis"},
}
