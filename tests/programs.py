"""The programs that only some tests need, and a fixture for each, which skips without it.

All are found by PATH: what Debian keeps elsewhere is looked for in the places beside PATH's
folders. So a PATH without them hides all of them, as `nox -s bare` does.

    python -m tests.programs FOLDER

makes links in FOLDER to the other programs of PATH.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Name of each program: what it is for, and where it may be, relative to the parents of PATH's
# folders.
PROGRAMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "redis-server": ("a system Redis beside the wheel's", ()),
    "sidekiq": ("its client pushes jobs that are imported", ()),
    "faketime": ("servers with wrong clocks", ("lib/*/faketime/libfaketime.so.1",)),
    "chromium": ("the dashboard in a browser", ("bin/chromium", "bin/chromium-browser")),
    "nginx": ("the dashboard behind a reverse proxy", ("bin/nginx", "sbin/nginx")),
    "java": ("Spark, for the lake", ()),
    "postgresql": ("the outbox of Django", ("bin/initdb", "lib/postgresql/*/bin/initdb")),
    "promtool": ("the files for Prometheus", ()),
    "systemd-analyze": ("the unit of a systemd service", ()),
    "npx": ("Azurite, for a lake on Azure; a client of the HTTP API in TypeScript", ()),
    "go": ("a client of the HTTP API in Go", ()),
    "php": ("a client of the HTTP API in PHP", ()),
    "git": ("an earlier version beside this one", ()),
    "pgrep": ("the children of a process", ()),
}
# Found by PATH alone, whose presence could make up for one of the programs.
HIDDEN = {*PROGRAMS, "chromium-browser", "google-chrome", "initdb", "node", "npm", "pg_lsclusters"}


def find(name: str) -> str | None:
    """Return the path of a program (of faketime: its library), or None."""
    if name == "java" and (home := os.environ.get("JAVA_HOME")):
        return str(Path(home) / "bin" / "java")
    places = PROGRAMS[name][1]
    if not places:
        return shutil.which(name)
    folders = [Path(each) for each in os.get_exec_path() if each]
    found = (
        file
        for place in places
        for folder in folders
        for file in sorted(folder.parent.glob(place), reverse=True)
    )
    return next((str(each) for each in found), None)


def hide(folder: Path) -> None:
    """Link all other programs of PATH into a folder, for a PATH of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for place in os.get_exec_path():
        for file in sorted(Path(place).glob("*")):
            link = folder / file.name
            if file.name not in HIDDEN and not link.is_symlink():
                link.symlink_to(file)


def fixture_name(program: str) -> str:
    """Return the name of a program's fixture."""
    return program.replace("-", "_") + "_program"


def needs(*programs: str) -> pytest.MarkDecorator:
    """Return the mark of tests that need programs which they don't start themselves."""
    return pytest.mark.usefixtures(*map(fixture_name, programs))


def is_needed_by(item: pytest.Item) -> bool:
    """Tell whether a test needs one of the programs."""
    fixtures = getattr(item, "fixturenames", ())
    return any(fixture_name(program) in fixtures for program in PROGRAMS)


def _make_fixture(program: str) -> Callable[..., Any]:
    @pytest.fixture(scope="session", name=fixture_name(program))
    def path() -> Iterator[str]:
        if not (found := find(program)):
            pytest.skip(f"{program} is not installed")
        yield found

    return path


for _program in PROGRAMS:
    globals()[fixture_name(_program)] = _make_fixture(_program)


if __name__ == "__main__":
    hide(Path(sys.argv[1]))
