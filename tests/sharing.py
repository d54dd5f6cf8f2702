"""How several processes share the tests: each file is one's, and what is heavy is one's alone, which begins with it.

pytest-xdist has groups for that (`--dist loadgroup`), but its 3.8 marks them in a way that pytest 9.2 doesn't see.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

HEAVY = ("pipeline", "web", "chaos", "soak", "examples")  # folders whose tests take both processors; two at once would starve each other


class ByFile(LoadScopeScheduling):
    """Hands out files in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "heavy" if is_heavy(file) else file


def is_heavy(file: str) -> bool:
    """Of a test's file, from the project's root."""
    return file.startswith(tuple(f"tests/{folder}/" for folder in HEAVY))
