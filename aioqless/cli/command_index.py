"""Every command: its section in the help, and the modules that have it.

A process imports only the module of its command, so the commands are listed here.
"""

from __future__ import annotations

from aioqless.cli.extensions import COMMANDS, Index, extension_commands

# Section of the help -> command -> its module in cli/commands. Extensions have such a table in
# contrib/commands. The help lists sections and commands in this order.
_CORE: Index = {
    "Look": {
        "top": "top",
        "queues": "queues",
        "jobs": "jobs",
        "get": "jobs",
        "failed": "queues",
        "workers": "workers",
        "stats": "stats",
        "tail": "tail",
    },
    "Act on jobs": {
        "put": "jobs",
        "retry": "retry",
        "edit": "retry",
        "unfail": "retry",
        "cancel": "job_actions",
        "move": "job_actions",
        "tag": "job_actions",
        "track": "job_actions",
    },
    "Act on queues and workers": {
        "pause": "queues",
        "unpause": "queues",
        "clear": "queues",
        "recur": "recurring",
        "quiet": "workers",
        "resume": "workers",
        "subscribe": "workers",
        "unsubscribe": "workers",
    },
    "Serve": {"worker": "worker"},
    "Keep": {"config": "config", "check": "maintenance", "acl": "acl", "lua": "maintenance"},
}
_CORE_PACKAGE = "aioqless.cli.commands"


def commands_by_section() -> dict[str, list[str]]:
    """Return the commands of each section, those of extensions last."""
    more = extension_commands()
    return {title: [*_CORE.get(title, ()), *more.get(title, ())] for title in (_CORE | more)}


def command_modules() -> dict[str, list[str]]:
    """Return the modules of each command."""
    return {
        command: [f"{package}.{name}" for name in names.split()]
        for package, index in ((_CORE_PACKAGE, _CORE), (COMMANDS, extension_commands()))
        for commands in index.values()
        for command, names in commands.items()
    }
