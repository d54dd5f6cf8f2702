"""How several processes share the tests: each file is one's; what is heavy is one's alone, and
begins first.

pytest-xdist has groups for that (`--dist loadgroup`), but its 3.8 marks them in a way that pytest
9.2 doesn't see."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

# Folders that take a processor and more: two of a group at once would starve each other, and what
# they share would be made twice.
HEAVY = (("chaos", "examples", "soak", "web"), ("pipeline",))


class ByFile(LoadScopeScheduling):
    """Hands out groups and files in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        group = group_of(nodeid)
        return f"group {group}" if group < len(HEAVY) else nodeid.partition("::")[0]


def group_of(nodeid: str) -> int:
    """The number of a test's group; that of no group is the highest."""
    folder = nodeid.split("/")[1]
    return next((number for number, folders in enumerate(HEAVY) if folder in folders), len(HEAVY))
