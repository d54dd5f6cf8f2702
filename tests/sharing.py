"""Distribution of the tests to processes: by file; groups of heavy folders start first.

pytest-xdist has groups for that (`--dist loadgroup`), but pytest 9.2 doesn't see how its 3.8 marks
them.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

# Folders that use more than one processor: two of a group at once would starve each other, and both
# would create the fixtures that their tests share.
HEAVY = (
    ("tests/chaos", "tests/contrib/dashboard", "tests/examples", "tests/soak"),
    ("tests/contrib/lake",),
)


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out groups and files in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        group = group_of(nodeid)
        return f"group {group}" if group < len(HEAVY) else nodeid.partition("::")[0]


def group_of(nodeid: str) -> int:
    """Return the number of a test's group; the highest means that it has none."""
    return next(
        (
            number
            for number, folders in enumerate(HEAVY)
            if any(nodeid.startswith(f"{folder}/") for folder in folders)
        ),
        len(HEAVY),
    )
