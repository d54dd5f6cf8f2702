"""A missing extra is named with the command that installs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import TypeAlias

import pytest

from aioqless import AioqlessError
from aioqless.errors import MissingExtra, require_extra
from tests.unit.core_only import distributions, owners

ELSEWHERE = {"aioqless.testing.plugin": "pytest"}  # only pytest itself imports this


Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run() -> Run:
    """`run("queues", AIOQLESS_URL=...)`: a command where only the core is installed."""
    core = distributions("aioqless") | {"aioqless"}
    hidden = " ".join(module for module, names in owners().items() if not names & core)

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.unit.core_only", *words]
        given = os.environ | {"AIOQLESS_HIDDEN": hidden} | environment
        return subprocess.run(
            command, env=given, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def test_every_module_imports_without_extras_or_names_the_missing_extra(run: Run) -> None:
    done = run("modules")
    assert done.returncode == 0, done.stderr
    extras = set()
    for module, extra, missing, message in json.loads(done.stdout):
        if module in ELSEWHERE:
            assert missing == ELSEWHERE[module]
            continue
        assert message.endswith(
            f'is not installed. Install it with: pip install "aioqless[{extra}]"'
        ), module
        assert owners()[missing.partition(".")[0]] & distributions("aioqless", extra), (
            f"{extra} doesn't bring {missing}"
        )
        extras.add(extra)
    assert extras == {"web", "spark", "sqlalchemy", "opentelemetry", "prometheus", "sentry"}


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        ("web", "starlette", "web"),
        ("outbox sqlite+aiosqlite://", "sqlalchemy", "sqlalchemy"),
        ("worker app.jobs --reload", "watchfiles", "reload"),
        ("worker aioqless.contrib.telemetry.sentry", "sentry_sdk", "sentry"),
        ("pipeline archive", "pyarrow", "spark"),
        ("queues", "cryptography", "encryption"),
    ],
)
def test_command_names_its_missing_extra_in_one_line(
    run: Run, words: str, package: str, extra: str
) -> None:
    keys = {"AIOQLESS_SEAL_KEYS": "A" * 43 + "="} if extra == "encryption" else {}
    done = run(*words.split(), AIOQLESS_URL="redis://127.0.0.1:1", **keys)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == f"aioqless: {package} is not installed. Install it with: pip install "
        f'"aioqless[{extra}]"\n'
    )


def test_installed_package_that_fails_to_import_raises_its_own_error() -> None:
    with (
        pytest.raises(
            MissingExtra,
            match=re.escape("nowhere can't be used (its library is gone). Install it with"),
        ) as raised,
        require_extra("web"),
    ):
        raise ImportError("its library is gone", name="nowhere.inside")
    assert isinstance(raised.value, AioqlessError) and isinstance(raised.value, ImportError)
    assert (raised.value.extra, raised.value.name) == ("web", "nowhere.inside")


def test_missing_module_of_aioqless_is_not_reported_as_a_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError) as raised, require_extra("web"):
        import aioqless.nowhere  # type: ignore[import-not-found]  # noqa: F401
    assert not isinstance(raised.value, MissingExtra)
