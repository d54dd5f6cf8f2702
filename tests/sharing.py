"""Distribution of the tests to processes: by file; groups of slow folders start first.

pytest-xdist has groups for that (`--dist loadgroup`), but pytest 9.2 does not recognize the marks
that xdist 3.8 sets.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

# Tests that use more than one processor, by how their names begin: two of a group at once would
# slow down each other, and both would create their shared fixtures.
HEAVY = (
    ("tests/chaos/", "tests/soak/"),
    ("tests/contrib/dashboard/", "tests/examples/"),  # browsers
    # One Spark for all: its start takes as long as ten refreshes.
    ("tests/contrib/lake/test_", "tests/contrib/lake/proof/"),
)


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Distributes groups and files in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        group = group_of(nodeid)
        return f"group {group}" if group < len(HEAVY) else nodeid.partition("::")[0]


def group_of(nodeid: str) -> int:
    """Return the number of a test's group; the highest number means no group."""
    return next(
        (number for number, names in enumerate(HEAVY) if nodeid.startswith(names)), len(HEAVY)
    )
