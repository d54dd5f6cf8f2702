"""The floors of the Lua libraries: what a library may use.

A library uses those of lower floors. On some floors libraries may also use each other, without a
circle; on the others each stands alone: it changes its own job, and notes what follows for others.
"""

from __future__ import annotations

from typing import Final

from aioqless.store.command_header import HeaderError

# From the lowest to the highest, with whether libraries of a floor may use each other.
FLOORS: Final = {
    "base": True,  # arguments, JSON, clock, configuration, a job's hash
    "facts": True,  # what is stored about jobs: history, statistics, tags, dependencies, steps
    "places": True,  # where a job is: waiting, scheduled, held, in a bulk, running
    "search": True,  # lists and views of jobs
    "recurring": True,  # recurring jobs and their instances
    "ends": False,  # a job completes, fails or is deleted
    "changes": False,  # a job is put, released, revived
    "pops": True,  # a worker takes jobs
    "agenda": False,  # what follows for others from a change
    "check": True,  # findings about what is stored, and their repair
}
_AGENDA: Final = "agenda"  # the library that calls the others of its floor
_ORDER: Final = {name: number for number, name in enumerate(FLOORS)}


def check_use(user: str, used: str, line: int) -> None:
    """Refuse the use of a library by another one that may not know it.

    Args:
        user: The file of the library that uses another, as `lib/facts/history.lua`.
        used: The file of that.
        line: Where it does.

    Raises:
        HeaderError: It is of a higher floor, or of one whose libraries don't know each other.
    """
    if user == used or user.startswith("contrib/"):
        return
    here, there = floor_of(user), floor_of(used)
    if there and _ORDER[there] < _ORDER[here]:
        return
    if here == there and (FLOORS[here] or user == f"lib/{_AGENDA}/{_AGENDA}.lua"):
        return
    raise HeaderError(
        f"{user}:{line}: {used} is not on a lower floor than {here}; note what follows for other "
        "jobs (lib/facts/notes.lua), or move what both need down"
    )


def floor_of(file: str) -> str:
    """Return the floor of a library of the core, and "" for one of an extension.

    Raises:
        HeaderError: Its folder is not a floor.
    """
    if file.startswith("contrib/"):
        return ""
    floor = file.split("/")[1]
    if floor not in FLOORS:
        raise HeaderError(f"{file}: its folder must be a floor: {', '.join(FLOORS)}")
    return floor
