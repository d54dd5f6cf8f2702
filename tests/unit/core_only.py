"""Runs aioqless as if it were installed without extras.

`python -m tests.unit.core_only modules` imports all modules; other words are a command.
AIOQLESS_HIDDEN in the environment names the modules that appear to be missing.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from types import ModuleType

from packaging.requirements import Requirement

from tests.source import FILES, name_of

ROOT = Path(__file__).parents[2]


def distributions(name: str, *extras: str) -> set[str]:
    """Return the packages that are installed with a distribution and its extras."""
    found: set[str] = set()
    todo = [(name, extras)]
    while todo:
        name, extras = todo.pop()
        found.add(_normal(name))
        for requirement in map(Requirement, requires(name) or ()):
            wanted = not requirement.marker or any(
                requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)
            )
            if wanted and (_normal(requirement.name) not in found or requirement.extras):
                todo.append((requirement.name, tuple(requirement.extras)))
    return found


@cache
def owners() -> dict[str, set[str]]:
    """Return the distributions of each installed top-level module."""
    return {
        module: {_normal(name) for name in names}
        for module, names in packages_distributions().items()
    }


def absent(extra: str | None) -> set[str]:
    """Return the top-level modules that neither the core nor an extra brings."""
    installed = distributions("aioqless", *([extra] if extra else []))
    others = {module for module, names in owners().items() if not names & installed}
    # Copies of standard modules, such as argparse, are installed with some packages.
    return others - sys.stdlib_module_names


def run(
    *words: str,
    extra: str | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command as if only the core and perhaps one extra were installed."""
    hidden = " ".join(absent(extra))
    return subprocess.run(
        [sys.executable, "-m", "tests.unit.core_only", *words],
        cwd=folder,
        env={
            **os.environ,
            "AIOQLESS_HIDDEN": hidden,
            "PYTHONPATH": str(ROOT),
            **(environment or {}),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


class Absent(MetaPathFinder):
    """Hides modules as if they weren't installed."""

    def __init__(self, hidden: set[str]) -> None:
        self._hidden = hidden

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in self._hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def missing() -> Iterator[tuple[str, str, str, str]]:
    """Yield each module that can't be imported: its name, extra, missing module, and error."""
    from aioqless.errors import MissingExtra

    for name in ("aioqless" + f".{name_of(file)}" * bool(name_of(file)) for file in FILES):
        if name != "aioqless.__main__":
            try:
                importlib.import_module(name)
            except ImportError as error:
                yield (
                    name,
                    error.extra if isinstance(error, MissingExtra) else "",
                    str(error.name),
                    str(error),
                )


def main() -> None:
    sys.meta_path.insert(0, Absent(set(os.environ["AIOQLESS_HIDDEN"].split())))
    if sys.argv[1:] == ["modules"]:
        print(json.dumps(list(missing())))
    else:
        from aioqless.__main__ import main as command

        command()


if __name__ == "__main__":
    main()
