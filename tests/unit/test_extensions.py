"""Each extension can be deleted, and so can all of them: the core works without."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aioqless.lua import list_commands, list_libraries
from tests.source import PACKAGE

EXTENSIONS = sorted(each.parent.name for each in (PACKAGE / "contrib").glob("*/__init__.py"))
# These cannot be imported without another one, and are deleted with it.
DEPENDENTS = {
    "archive": ("lake",),
    "http": ("dashboard", "http_api", "human_tasks"),
    "job_filter": ("dashboard", "http_api", "top"),
    "metrics": ("dashboard", "top"),
}
# Of the core, without a server: the one of the tests is found by the private Redis.
FAST_TESTS = [
    f"tests/unit/test_{name}.py"
    for name in ("commands", "handlers", "jobs", "exports", "settings", "outcome")
]
USE_OF_THE_CORE = """
import importlib, pkgutil, aioqless
from aioqless.cli.acl_roles import ROLES, user
from tests.codegen import generate
from aioqless.store.command_header import command_names
from aioqless.store.script_composer import compose
for package in ("cli", "client", "handlers", "redis", "runtime", "store", "testing", "worker"):
    module = importlib.import_module(f"aioqless.{package}")
    for found in pkgutil.walk_packages(module.__path__, f"{module.__name__}."):
        importlib.import_module(found.name)
for file, text in generate().items():
    assert file.read_text("utf-8") == text, file
for name in command_names():
    compose(name, "ql")
for role in ROLES:
    user(role, "ql", "secret")
print(aioqless.__file__)
"""


@pytest.mark.parametrize(
    "extension", ["*", *(pytest.param(name, marks=pytest.mark.long) for name in EXTENSIONS)]
)
def test_core_works_without_an_extension(extension: str, tmp_path: Path) -> None:
    """`*` is all of them."""
    package = tmp_path / "aioqless"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (extension, *DEPENDENTS.get(extension, ())):
        for folder in (package / "contrib").glob(name):
            if folder.is_dir():
                shutil.rmtree(folder)

    def run(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments], check=True, timeout=120, cwd=tmp_path, text=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path)}, stdout=subprocess.PIPE,
        ).stdout  # fmt: skip

    assert run("-c", USE_OF_THE_CORE) == f"{package}/__init__.py\n"
    shown = {line.split()[0] for line in run("-m", "aioqless", "--help").splitlines() if line}
    gone = [
        name
        for file in (PACKAGE / "contrib").glob(f"{extension}/cli/commands.json")
        for name in json.loads(file.read_text("utf-8"))
    ]
    assert "put" in shown and not shown & {*gone}
    if extension != "*":
        root = PACKAGE.parent
        shutil.copytree(
            root / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copy(root / "pyproject.toml", tmp_path)
        run("-m", "compileall", "-q", str(package))
        run("-m", "pytest", "-q", "-p", "no:cacheprovider", *FAST_TESTS)


def test_names_of_scripts_are_unique_among_core_and_extensions() -> None:
    libraries = [each for each in list_libraries() if not each.endswith("/keys.lua")]
    for files in (list_commands(), libraries):
        names = [each.rpartition("/")[2] for each in files]
        assert sorted(names) == sorted(set(names))
