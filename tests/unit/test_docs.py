"""Links, commands, options and names in README and docs/ exist."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

import aioqless
from aioqless import errors
from aioqless.cli.app import app
from aioqless.cli.main import load_command
from aioqless.cli.worker_options import parse_options
from aioqless.client import job_data
from aioqless.client.config import Config
from aioqless.client.jobs import Jobs
from aioqless.client.put_options import PutOptions
from aioqless.client.workers import Workers
from aioqless.handlers.job_options import JobOptions
from aioqless.lua import constant, constants
from aioqless.worker import ReconnectDelays, Settings
from aioqless.worker.poller import LEAST_PER_POP
from tests.unit.pages import (
    PAGES,
    ROOT,
    anchors,
    blocks,
    code,
    command_lines,
    commands_named,
    links,
    name_of,
    ours,
    spans,
)

EVERYTHING = "\n".join(each for page in PAGES for each in code(page))
OPTIONS = "".join(
    (ROOT / "docs" / page).read_text("utf-8") for page in ("handlers.md", "putting.md")
)
EXCEPTIONS = (ROOT / "docs" / "errors.md").read_text("utf-8")
WORKERS = "".join(
    (ROOT / "docs" / page).read_text("utf-8")
    for page in ("workers.md", "operating.md", "shutdown.md", "health-checks.md")
)
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text("utf-8")
CONFIG_LUA = (ROOT / "aioqless" / "lua" / "lib" / "config.lua").read_text("utf-8")
SHARED = [
    (option, constants().get(value, value))
    for option, value in re.findall(r"\['([\w-]+)'\] = (?:constants\.)?(\d+|[A-Z_]+)", CONFIG_LUA)
]
CONFIG = dict(SHARED)
SETTINGS = Settings()
DEFAULT_RETRIES = constant("DEFAULT_RETRIES")
load_command()
LUA = {file: file.read_text("utf-8") for file in (ROOT / "aioqless").rglob("*.lua")}
KEYS = "\n".join(text for file, text in LUA.items() if file.name == "keys.lua")
COMMANDS: Any = typer.main.get_command(app)  # of click, which typer uses
OFFERED = {name for name in aioqless.__all__ if name[0].isupper()} | {
    "Outbox",
    "Relay",
    "Source",
    "RetryPolicy",
    "exponential",
}
MONITORING = (ROOT / "docs" / "monitoring.md").read_text("utf-8")
EVENTS = set(
    re.findall(r"^\| `(\w+\.\w+)` \| (?:info|debug|warning|error) \|", MONITORING, re.MULTILINE)
)
LOGGERS = {event.partition(".")[0] for event in EVENTS}
# metrics and attributes that are named like modules
OPENTELEMETRY = set(
    re.findall(
        r'"aioqless\.(\w+)',
        (ROOT / "aioqless" / "contrib" / "telemetry" / "opentelemetry.py").read_text("utf-8"),
    )
)
THINGS = {
    "job": aioqless.Job,
    "worker": aioqless.Worker,
    "queue": aioqless.Queue,
    "client": aioqless.Client,
}
DOORS = {"jobs": Jobs, "workers": Workers, "config": Config}
# of all commands, of uvicorn, of manage.py aioqless_worker
OTHERS = {"--help", "--timeout-graceful-shutdown", "--backend", "--settings"}

# set by the supervisor for its processes; configuration of a Flask app
NO_VARIABLES = {"AIOQLESS_PROCESS_NUMBER", "AIOQLESS_TIMEOUT"}

pages = pytest.mark.parametrize("page", PAGES, ids=name_of)
our_pages = pytest.mark.parametrize("page", [page for page in PAGES if ours(page)], ids=name_of)


def options_of(command: Any) -> set[str]:
    """Return the options of a command and its subcommands."""
    own = {
        name
        for each in command.params
        if not getattr(each, "hidden", False)
        for name in [*each.opts, *each.secondary_opts]
    }
    inner = getattr(command, "commands", {}).values()
    return {name for name in own if name.startswith("-")}.union(*map(options_of, inner))


def read(command: Any, words: list[str]) -> None:
    """Parse a command line without executing it. Raises what a user would see."""
    if command is COMMANDS and words[0] == "worker":  # Typer only knows the names of its options
        parse_options(words[1:])
    context = command.make_context("aioqless", words)
    if hasattr(command, "commands") and (rest := [*context._protected_args, *context.args]):  # noqa: SLF001  # of click
        _, inner, rest = command.resolve_command(context, rest)
        read(inner, rest)


def has_attribute(thing: type, name: str) -> bool:
    """Return whether instances have an attribute, also one that is set by the constructor."""
    files = {
        Path(sys.modules[each.__module__].__file__ or "")
        for each in thing.__mro__
        if each.__module__.startswith("aioqless")
    }
    made = any(re.search(rf"\bself\.{name}\b", file.read_text("utf-8")) for file in files)
    return hasattr(thing, name) or name in getattr(thing, "__annotations__", {}) or made


def names(page: Path, pattern: str) -> set[tuple[str, str]]:
    return set(re.findall(pattern, "\n".join(code(page))))


@pages
def test_every_link_leads_to_an_existing_file_and_heading(page: Path) -> None:
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@pages
def test_every_column_of_a_table_has_a_heading(page: Path) -> None:
    lines = page.read_text("utf-8").splitlines()
    headings = [
        above
        for above, line in itertools.pairwise(lines)
        if above.startswith("|") and re.fullmatch(r"\|(:?-+:?\|)+", line)
    ]
    assert [each for each in headings if re.search(r"\|\s*\|", each)] == []


@pages
def test_every_command_line_is_valid(page: Path) -> None:
    for line in command_lines(page):
        read(COMMANDS, shlex.split(line, comments=True))


@pages
def test_every_command_in_prose_exists(page: Path) -> None:
    for line in commands_named(page):
        name, *rest = line.split()
        assert name in COMMANDS.commands, line
        assert {word for word in rest if word.startswith("-")} <= options_of(
            COMMANDS.commands[name]
        ), line


@our_pages
def test_every_command_line_option_in_prose_exists(page: Path) -> None:
    named = {
        word
        for span in spans(page)
        if span.startswith("--")
        for word in re.findall(r"(?<!\S)--[\w-]+", span)
    }
    assert named <= options_of(COMMANDS) | OTHERS


@pages
def test_every_snippet_is_valid_python(page: Path) -> None:
    for block in blocks(page, "python"):
        compile(block, name_of(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pages
def test_pages_import_the_names_that_their_snippets_use(page: Path) -> None:
    tree = ast.parse("\n".join(blocks(page, "python")))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in OFFERED}
    assert used <= {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }


@pages
def test_every_file_of_the_package_in_prose_exists(page: Path) -> None:
    root = ROOT / "aioqless" if page.name == "how-it-works.md" else ROOT
    named = [
        span
        for span in spans(page)
        if re.fullmatch(r"[\w/]+(/|\.py|\.lua)", span)
        and (root != ROOT or span.startswith("aioqless/"))
    ]
    assert [
        path
        for path in named
        if not (root / path.removeprefix("aioqless/" if root != ROOT else "")).exists()
    ] == []


@our_pages
def test_every_method_in_prose_exists(page: Path) -> None:
    for thing, name in names(page, r"(?<![\w.\"/])(job|queue|worker|client)\.([a-z]\w*)"):
        assert (
            has_attribute(THINGS[thing], name)
            or f"{thing}.{name}" in EVENTS
            or name in ("py", "lua")
        ), f"{thing}.{name}"
    for door, name in names(page, r"\bclient\.(jobs|workers|config)\.([a-z]\w*)"):
        assert has_attribute(DOORS[door], name), f"client.{door}.{name}"


@pages
def test_every_name_of_the_package_in_prose_exists(page: Path) -> None:
    for first, second in names(page, r"(?<![\w./\-])aioqless\.([A-Za-z]\w*)(?:\.([A-Za-z]\w*))?"):
        if hasattr(aioqless, first):
            assert (
                not second
                or hasattr(getattr(aioqless, first), second)
                or find_spec(f"aioqless.{first}.{second}")
            ), (first, second)
        else:
            assert find_spec(f"aioqless.{first}") or first in OPENTELEMETRY | LOGGERS, first
    for node in ast.walk(ast.parse("\n".join(blocks(page, "python")))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aioqless"):
            module = pytest.importorskip(node.module or "")
            missing = {name.name for name in node.names if not hasattr(module, name.name)}
            assert {name for name in missing if not find_spec(f"{node.module}.{name}")} == set()


@pytest.mark.parametrize(
    "option", sorted({*JobOptions.__annotations__, *PutOptions.__annotations__})
)
def test_pages_on_handlers_and_put_list_every_option(option: str) -> None:
    assert f"`{option}`" in OPTIONS


def test_page_on_exceptions_lists_each_with_its_base_classes() -> None:
    rows = re.findall(r"^\| (\**)`(\w+)`\** \| (.*?) \| ", EXCEPTIONS, re.MULTILINE)
    listed = {(bool(bold), name, parents) for bold, name, parents in rows if hasattr(errors, name)}
    assert listed == {
        (name in aioqless.__all__, name, ", ".join(f"`{base.__name__}`" for base in each.__bases__))
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, errors.AioqlessError)
    }


@pytest.mark.parametrize(
    "setting",
    [field.name for group in (Settings, ReconnectDelays) for field in dataclasses.fields(group)],
)
def test_pages_on_workers_list_every_setting(setting: str) -> None:
    assert re.search(rf"`{setting}`|\b{setting}=|--{setting.replace('_', '-')}\b", WORKERS)


@pytest.mark.parametrize(("option", "default"), SHARED)
def test_page_on_configuration_lists_every_option_with_its_default(
    option: str, default: str
) -> None:
    assert re.search(rf"^\|.*`{option}`.*\|.*\b{default}\b.*\|", CONFIGURATION, re.MULTILINE)


@pytest.mark.parametrize("option", sorted(options_of(COMMANDS)))
def test_every_option_of_the_command_line_is_documented(option: str) -> None:
    assert re.search(rf"(?<![\w-]){option}(?![\w-])", EVERYTHING)


@pytest.mark.parametrize("command", sorted(COMMANDS.commands))
def test_every_command_is_documented(command: str) -> None:
    assert re.search(rf"\baioqless {command}\b", EVERYTHING)


def test_every_key_has_a_comment_with_its_type() -> None:
    types = r"^-- (H|L|S|Z|T|stream|channel:) .*(?:\n-- .*)*\nfunction keys\."
    assert len(re.findall(types, KEYS, re.MULTILINE)) == KEYS.count("function keys.")


def test_every_field_has_a_comment() -> None:
    used = {field for text in LUA.values() for field in re.findall(r"'(x-[a-z-]+)'", text)}
    assert set(re.findall(r"^--   (x-[a-z-]+)", KEYS, re.MULTILINE)) == used


def test_reference_lists_every_environment_variable() -> None:
    read = {
        name
        for file in (ROOT / "aioqless").rglob("*.py")
        for name in re.findall(r"\bAIOQLESS_[A-Z_]+[A-Z]\b", file.read_text("utf-8"))
    }
    page = (ROOT / "docs" / "reference" / "environment.md").read_text("utf-8")
    assert set(re.findall(r"`(AIOQLESS_\w+)`", page)) == read - NO_VARIABLES


def test_navigation_of_the_site_leads_to_existing_headings() -> None:
    site = (ROOT / "mkdocs.yml").read_text("utf-8")
    named = re.findall(r": ([\w/-]+\.md)#([\w-]+)$", site, re.MULTILINE)
    assert named
    for path, anchor in named:
        assert anchor in anchors(ROOT / "docs" / path), f"{path}#{anchor}"


@pytest.mark.parametrize(
    ("page", "statement"),
    [
        ("get-started/first-worker.md", f"up to {SETTINGS.concurrency} at once"),
        (
            "get-started/first-worker.md",
            f"the time they have, {SETTINGS.shutdown_timeout:g} seconds",
        ),
        ("get-started/first-worker.md", f"**locked** for {CONFIG['heartbeat']} seconds"),
        ("get-started/first-worker.md", f"a grace period of {CONFIG['grace-period']} seconds"),
        ("get-started/first-worker.md", f"`retries` times ({DEFAULT_RETRIES})"),
        ("coming-from/celery.md", f"`heartbeat` ({CONFIG['heartbeat']} s)"),
        ("coming-from/celery.md", f"retries=3)`; {DEFAULT_RETRIES} by default"),
        ("coming-from/celery.md", f"`-c` ({SETTINGS.concurrency}) that of jobs at once"),
        ("coming-from/rq.md", f"{SETTINGS.concurrency} by default, not one"),
        ("coming-from/exq.md", f"locks each for {CONFIG['heartbeat']} seconds"),
        ("coming-from/exq.md", f"third of the slots (at least {LEAST_PER_POP})"),
        ("coming-from/exq.md", f"`put(..., retries=25)`; {DEFAULT_RETRIES} by default"),
        ("faq.md", f"uses one of its retries ({DEFAULT_RETRIES})"),
        ("faq.md", f"{job_data.MAX_BYTES >> 20} MiB of JSON"),
        ("faq.md", f"for {SETTINGS.unknown_klass_delay:g} seconds"),
        ("faq.md", f"up to {SETTINGS.unknown_klass_timeout / 60:g} minutes"),
        ("glossary.md", f"after `heartbeat` seconds ({CONFIG['heartbeat']})"),
        ("glossary.md", f"may still renew it ({CONFIG['grace-period']} s)"),
        ("glossary.md", f"lose its worker ({DEFAULT_RETRIES} by default)"),
        ("glossary.md", f"at most `shutdown_timeout` seconds ({SETTINGS.shutdown_timeout:g})"),
    ],
)
def test_page_for_newcomers_states_the_default_of_the_code(page: str, statement: str) -> None:
    assert statement in " ".join((ROOT / "docs" / page).read_text("utf-8").split())


def test_readme_is_short() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert 500 <= len(readme.split()) <= 900
    assert readme.partition("```python")[0].count("\n") < 40
    assert "**At least once.**" in readme
    assert readme.index("# app/jobs.py") < readme.index("\n## ")
    for marker in ("demo", "tests", "bench:summary", "/bench:summary"):
        assert f"<!-- {marker} -->" in readme
