"""A missing extra is named with the command that installs it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer

import aioqless
from aioqless import AioqlessError
from aioqless.cli.app import app
from aioqless.cli.help import list_commands
from aioqless.cli.main import load_command
from aioqless.errors import MissingExtra, require_extra
from tests.unit.core_only import distributions, owners, run

ELSEWHERE = {"aioqless.testing.plugin": "pytest"}  # only pytest itself imports this
# `aioqless.cli.main` imports these, and names their extra.
COMMAND_LINE = re.compile(r"aioqless\.(contrib\.\w+\.)?cli\.")


@pytest.mark.long
def test_every_module_imports_without_extras_or_names_the_missing_extra() -> None:
    done = run("modules")
    assert done.returncode == 0, done.stderr
    extras = set()
    for module, extra, missing, message in json.loads(done.stdout):
        if module in ELSEWHERE:
            assert missing == ELSEWHERE[module]
            continue
        if COMMAND_LINE.match(module) and not extra:
            assert missing in ("typer", "rich")
            continue
        assert message.endswith(
            f'is not installed. Install it with: pip install "aioqless[{extra}]"'
        ), module
        assert owners()[missing.partition(".")[0]] & distributions("aioqless", extra), (
            f"{extra} doesn't bring {missing}"
        )
        extras.add(extra)
    assert extras == {
        "top",
        "web",
        "lake",
        "sqlalchemy",
        "django",
        "flask",
        "opentelemetry",
        "prometheus",
        "sentry",
    }


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        ("queues", "typer", "cli"),
        ("web", "typer", "web"),
        ("outbox sqlite+aiosqlite://", "typer", "cli,sqlalchemy"),
        ("lake archive", "typer", "lake"),
        ("worker app.jobs --reload", "watchfiles", "reload"),
        ("worker aioqless.contrib.telemetry.sentry", "sentry_sdk", "sentry"),
    ],
)
def test_command_of_the_core_alone_names_its_missing_extra_in_one_line(
    words: str, package: str, extra: str
) -> None:
    done = run(*words.split(), environment={"AIOQLESS_URL": "redis://127.0.0.1:1"})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == missing(package, extra)


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        ("web", "starlette", "web"),
        ("outbox sqlite+aiosqlite://", "sqlalchemy", "sqlalchemy"),
        ("lake archive", "pyarrow", "lake"),
        ("queues", "cryptography", "encryption"),
    ],
)
def test_command_with_the_command_line_names_its_missing_extra_in_one_line(
    words: str, package: str, extra: str
) -> None:
    keys = {"AIOQLESS_ENCRYPTION_KEYS": "A" * 43 + "="} if extra == "encryption" else {}
    environment = {"AIOQLESS_URL": "redis://127.0.0.1:1", **keys}
    done = run(*words.split(), extra="cli", environment=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == missing(package, extra)


@pytest.mark.parametrize(
    ("extra", "package", "other", "own", "foreign"),
    [
        pytest.param("lake", "duckdb", "lake-read", "tables", "stats"),
        pytest.param("lake-read", "pyspark", "lake", "stats", "archive --url redis://127.0.0.1:1"),
    ],
)
def test_lake_is_written_without_duckdb_and_read_without_spark(
    extra: str, package: str, other: str, own: str, foreign: str, tmp_path: Path
) -> None:
    lake = ("--lake", str(tmp_path))
    done = run("lake", *own.split(), *lake, extra=extra)
    assert done.returncode == 1 and done.stderr.startswith("aioqless: there is no lake at")
    done = run("lake", *foreign.split(), *lake, extra=extra)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", missing(package, other))


def missing(package: str, extra: str) -> str:
    return (
        f'aioqless: {package} is not installed. Install it with: pip install "aioqless[{extra}]"\n'
    )


def test_core_alone_lists_all_commands_and_what_to_install() -> None:
    load_command()
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    listed = {name for names in list_commands().values() for name in names}
    assert listed == set(commands)
    for words, code in ((["--help"], 0), ([], 2)):
        done = run(*words)
        assert (done.returncode, done.stderr) == (code, "")
        assert done.stdout.startswith("Usage: aioqless [OPTIONS] COMMAND")
        assert listed <= set(done.stdout.split())
        assert 'pip install "aioqless[cli]"' in done.stdout
    assert run("--version").stdout == f"aioqless {aioqless.__version__}\n"
    assert run("worker", "--help").stdout.startswith("usage: aioqless worker [OPTIONS] MODULE...")


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
