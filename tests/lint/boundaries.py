"""Check the source: `python -m tests.lint.boundaries`, which `nox -s lint` runs.

These are rules that neither ruff nor import-linter can check.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from tests.source import FILES, LUA, name_of, tree_of

LUA_COMMAND, LUA_LIBRARY, LUA_WIDTH = 80, 150, 100  # lines without comments; characters
PROCESS_CONTROL = (
    *("sys.argv", "sys.exit", "os._exit"),
    *("loop.add_signal_handler", "signal.signal"),
)


OWN_PROCESSES = {"contrib.process_pool.child_main", "runtime.os_signals", "runtime.forks"}
CONTROLLING = ("__main__", "cli.", "contrib.django.management.commands.", "contrib.private_redis")
SUFFIXES_OF_KEYS = (
    *("-work", "-scheduled", "-locks", "-depends", "-recur"),
    *(":queues", ":workers", ":completed", ":failures"),
)


def controlling_modules() -> Iterator[str]:
    """Only the command line and own processes use argv, signals and exit."""
    for file in FILES:
        name = name_of(file)
        if name in OWN_PROCESSES or name.startswith(CONTROLLING):
            continue
        if re.match(r"contrib\.\w+\.cli\b", name):
            continue
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in PROCESS_CONTROL:
                yield f"{file}:{node.lineno}: {ast.unparse(node)} is for the command line"


def spelled_keys() -> Iterator[str]:
    """Python spells no key of a queue or of the namespace."""
    for file in FILES:
        for node in ast.walk(tree_of(file)):
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
                continue
            if node.value.endswith(SUFFIXES_OF_KEYS) and " " not in node.value:
                yield f"{file}:{node.lineno}: the key {node.value!r} belongs in a keys.lua"


def long_lua() -> Iterator[str]:
    for file in LUA:
        lines = file.read_text("utf-8").splitlines()
        code = [line for line in lines if line.strip() and not line.strip().startswith("--")]
        limit = LUA_LIBRARY if "lib" in file.parts else LUA_COMMAND
        if len(code) > limit:
            yield f"{file}: {len(code)} lines of code, not {limit}"
        for number, line in enumerate(lines, 1):
            if len(line) > LUA_WIDTH:
                yield f"{file}:{number}: {len(line)} characters, not {LUA_WIDTH}"


def listed_files() -> Iterator[str]:
    """Files that the docstring of a package lists exist."""
    for file in FILES:
        if file.name == "__init__.py":
            docstring = ast.get_docstring(tree_of(file)) or ""
            for name in re.findall(r"^ *(\w+(?:\.py|/))(?=\s{1,}\S)", docstring, re.MULTILINE):
                if not (file.parent / name).exists():
                    yield f"{file}: there is no {name}"


def main() -> int:
    checks = (controlling_modules, spelled_keys, long_lua, listed_files)
    problems = [problem for check in checks for problem in check()]
    for problem in problems:
        print(problem)
    return len(problems) > 0


if __name__ == "__main__":
    sys.exit(main())
