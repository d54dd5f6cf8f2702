"""Compare two versions of the tests by what they find: `python -m tests.mutants`.

Tests may be deleted only if other tests prove the same. The script changes one line of the source
at a time (an operator, a number, or a statement that is left out) until the deleted tests have
found 20 changes, and the remaining tests must find each of these, too. The order is random with a
fixed seed. (Python's tools for mutation testing know no Lua.)

    python -m tests.mutants --before 1a2b3c4 --source aioqless/lua --tests tests/lua tests/model

Of Python, only lines are drawn that the deleted tests execute in their own process.

Deleted tests are those of the folders that the commit `--before` has and the working tree has not,
by name. One line is printed for each mutant that they find, and the exit code is 1 if the
remaining tests of the folders miss one.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
SEED = 20261128
LINES = "MUTANTS_LINES"  # in the environment: the file to which executed lines are written
PATIENCE = 900  # seconds of one run of pytest; a mutant that hangs is found
# An operator or value, and what it becomes; only outside of strings and comments.
COMMON = {
    r" < ": " >= ",
    r" > ": " <= ",
    r" <= ": " > ",
    r" >= ": " < ",
    r" and ": " or ",
    r" or ": " and ",
    r"\bif not ": "if ",
    r" \+ ": " - ",
    r" - ": " + ",
    r"\b0\b": "1",
}
CHANGES = {
    ".lua": COMMON
    | {
        r" == ": " ~= ",
        r" ~= ": " == ",
        r"\btrue\b": "false",
        r"\b1\b": "2",
        # A statement of one line is left out.
        r"^ *(?:redis\.call|[a-z_]+\.[a-z_]+)\(.*\)$": "",
    },
    ".py": COMMON
    | {
        r" == ": " != ",
        r" != ": " == ",
        r" is not None\b": " is None",
        r" is None\b": " is not None",
        r"\bTrue\b": "False",
        r"\bFalse\b": "True",
        r"^( *)(?:await )?[a-z_.]+\(.*\)$": r"\1pass",
        r"\breturn [^,]+$": "return None",
    },
}
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|--.*|#.*")


@dataclass(frozen=True)
class Mutant:
    """One changed line of one file, relative to the root."""

    file: Path
    number: int
    line: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.line.strip() or '(left out)'}"


def mutants(
    folder: Path, sources: Sequence[str], executed: Collection[str] | None = None
) -> Iterator[Mutant]:
    """Yield the mutants of the source in random order, at most one for each line.

    Args:
        folder: The root of the project.
        sources: Files or folders in it.
        executed: Lines of Python that are drawn, such as `aioqless/worker/runner.py:7`; None: all.
    """
    files = sorted(
        file
        for source in sources
        for file in (
            [folder / source] if (folder / source).is_file() else (folder / source).rglob("*")
        )
        if file.suffix in CHANGES and "generated" not in file.name
    )
    lines = [(file, number, line) for file in files for number, line in code_of(file)]
    chance = random.Random(SEED)
    chance.shuffle(lines)
    for file, number, line in lines:
        name = f"{file.relative_to(folder)}:{number}"
        if file.suffix == ".py" and executed is not None and name not in executed:
            continue
        # quoted text and comments keep their length and match nothing
        code = _QUOTED.sub(lambda found: "\0" * len(found[0]), line)
        possible = [
            (found.span(), found.expand(after))
            for before, after in CHANGES[file.suffix].items()
            for found in re.finditer(before, code)
        ]
        if possible and not line.lstrip().startswith(("def ", "class ", "from ", "import ", "@")):
            (start, end), text = chance.choice(possible)
            changed = Mutant(file.relative_to(folder), number, line[:start] + text + line[end:])
            if file.suffix != ".py" or compiles(file, changed):
                yield changed


def code_of(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers; those of docstrings are left out."""
    source = file.read_text("utf-8")
    skipped: set[int] = set()
    if file.suffix == ".py":
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                skipped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for number, line in enumerate(source.splitlines(), 1):
        if number not in skipped:
            yield number, line


def compiles(file: Path, mutant: Mutant) -> bool:
    try:
        compile(with_change(file, mutant), str(file), "exec")
    except SyntaxError:
        return False
    return True


def with_change(file: Path, mutant: Mutant) -> str:
    lines = file.read_text("utf-8").splitlines()
    lines[mutant.number - 1] = mutant.line
    return "\n".join(lines) + "\n"


class Tree:
    """A copy of the project in which one mutant at a time is tried."""

    def __init__(self, folder: Path, original: Path) -> None:
        self._folder = folder
        tracked = git(original, "ls-files", "--cached", "--others", "--exclude-standard")
        for name in tracked.splitlines():
            if (original / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(original / name, folder / name)

    def ids(self, tests: Sequence[str]) -> list[str]:
        """Return the ids of the tests that the tree has of some folders."""
        existing = [name for name in tests if (self._folder / name).exists()]
        listed = self._pytest("--collect-only", "-q", *existing).stdout
        return [line for line in listed.splitlines() if "::" in line]

    def executed(self, tests: Sequence[str]) -> set[str]:
        """Return the lines of the package that the tests execute, as `aioqless/x.py:7`."""
        lines = self._folder / "executed.txt"
        self._pytest("-q", "-p", "tests.mutants", *tests, environment={LINES: str(lines)})
        return set(lines.read_text("utf-8").splitlines())

    def passes(self, tests: Sequence[str]) -> bool:
        """Return whether the tests can be run, and pass."""
        return self._pytest("-x", "-q", *tests).returncode == 0

    def finds(self, mutant: Mutant, tests: Sequence[str]) -> bool:
        """Return whether one of the tests fails with a mutant."""
        file = self._folder / mutant.file
        original = file.read_text("utf-8")
        file.write_text(with_change(file, mutant), "utf-8")
        try:
            return not self.passes(tests)
        except subprocess.TimeoutExpired:
            return True
        finally:
            file.write_text(original, "utf-8")

    def _pytest(
        self, *words: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": str(self._folder)} | (environment or {}),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


def pytest_sessionstart() -> None:
    """Begin to trace; this file is a plugin of pytest, too."""
    if LINES in os.environ:
        threading.settrace(_trace)
        sys.settrace(_trace)


def pytest_sessionfinish() -> None:
    """Write the lines that were executed."""
    if LINES in os.environ:
        sys.settrace(None)
        package = f"{Path.cwd()}/aioqless/"
        lines = (
            f"{name.removeprefix(f'{Path.cwd()}/')}:{number}"
            for name, number in _executed
            if name.startswith(package)
        )
        Path(os.environ[LINES]).write_text("\n".join(sorted(lines)), "utf-8")


def _trace(frame: FrameType, event: str, _: object) -> Any:
    name = frame.f_code.co_filename
    if "/aioqless/" not in name:
        return None
    _executed.add((name, frame.f_lineno))
    return _trace


_executed: set[tuple[str, int]] = set()


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", required=True, help="commit that has the deleted tests")
    parser.add_argument("--source", nargs="+", required=True, help="files or folders to change")
    parser.add_argument("--tests", nargs="+", required=True, help="files or folders of tests")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        commit = Path(temporary) / "commit"
        git(ROOT, "worktree", "add", "--detach", str(commit), chosen.before)
        try:
            pairs = [
                (
                    Tree(Path(temporary) / f"before{n}", commit),
                    Tree(Path(temporary) / f"after{n}", ROOT),
                )
                for n in range(chosen.processes)
            ]
        finally:
            git(ROOT, "worktree", "remove", "--force", str(commit))
        before, after = pairs[0]
        kept = after.ids(chosen.tests)
        deleted = sorted(set(before.ids(chosen.tests)) - set(kept))
        print(f"{len(deleted)} tests deleted, {len(kept)} kept")

        def tried(drawn: tuple[tuple[Tree, Tree], Mutant]) -> tuple[Mutant, bool, bool]:
            (before, after), mutant = drawn
            found = before.finds(mutant, deleted)
            # one after another, so that fast folders can be named first
            is_found = found and any(after.finds(mutant, [tests]) for tests in chosen.tests)
            return mutant, found, is_found

        found, missed = 0, 0
        if not deleted:
            sys.exit("no test was deleted from these folders")
        if not (before.passes(deleted) and all(after.passes([each]) for each in chosen.tests)):
            sys.exit("tests fail without a mutant")
        executed = before.executed(deleted)
        drawn = iter(mutants(ROOT, chosen.source, executed))
        with ThreadPoolExecutor(chosen.processes) as pool:
            while found < chosen.count and (
                batch := list(itertools.islice(drawn, chosen.processes))
            ):
                for mutant, was_found, is_found in pool.map(tried, zip(pairs, batch, strict=False)):
                    if was_found:
                        found, missed = found + 1, missed + (not is_found)
                        print(f"{'found' if is_found else 'MISSED'}  {mutant}", flush=True)
    print(f"{found} mutants found by the deleted tests, {missed} missed by the others")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
