"""Check README and docs/: `python -m tests.lint.docs`, which `nox -s lint` runs.

Links, commands, options and names on the pages exist, every option, setting, exception and
public name of the code is documented, and the pages for newcomers state the defaults of the code.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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
from tests.pages import (
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

PUBLIC = [
    "aioqless",
    "aioqless/worker",
    "aioqless/testing",
    *(
        f"aioqless/contrib/{name}"
        for name in (
            "dashboard",
            "django",
            "encryption",
            "flask",
            "foreign_queues",
            "human_tasks",
            "human_tasks/api",
            "outbox",
            "partitions",
            "private_redis",
            "supervisor",
        )
    ),
]
COMMAND_LINE = "".join(
    (ROOT / "docs" / page).read_text("utf-8")
    for page in ("command-line.md", "reference/commands.md")
)
OPTIONS = "".join(
    (ROOT / "docs" / page).read_text("utf-8") for page in ("handlers.md", "putting.md")
)
EXCEPTIONS = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
WORKERS = "".join(
    (ROOT / "docs" / page).read_text("utf-8")
    for page in ("workers.md", "operating.md", "shutdown.md", "health-checks.md")
)
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text("utf-8")
CONFIG_LUA = (ROOT / "aioqless" / "lua" / "lib" / "base" / "config.lua").read_text("utf-8")
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
LOG_EVENTS = (ROOT / "docs" / "reference" / "log-events.md").read_text("utf-8")
EVENTS = set(
    re.findall(r"^\| `(\w+\.\w+)` \| (?:info|debug|warning|error) \|", LOG_EVENTS, re.MULTILINE)
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

# Pages for newcomers, with defaults of the code.
STATEMENTS = [
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
]


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


def snippets_of(page: Path) -> ast.Module:
    """Return the Python of a page; nothing if some of it is invalid, which is a problem itself."""
    try:
        return ast.parse("\n".join(blocks(page, "python")))
    except SyntaxError:
        return ast.Module([], [])


# Of one page; each yields what is wrong.


def broken_links(page: Path) -> Iterator[str]:
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield f"the link {path}#{anchor} leads nowhere"


def columns_without_heading(page: Path) -> Iterator[str]:
    for above, line in itertools.pairwise(page.read_text("utf-8").splitlines()):
        is_heading = above.startswith("|") and re.fullmatch(r"\|(:?-+:?\|)+", line)
        if is_heading and re.search(r"\|\s*\|", above):
            yield f"a column of the table {above} has no heading"


def invalid_command_lines(page: Path) -> Iterator[str]:
    for line in command_lines(page):
        try:
            read(COMMANDS, shlex.split(line, comments=True))
        except (Exception, SystemExit) as error:  # whatever a user would see
            yield f"the command line {line!r} is refused: {error!r}"


def unknown_commands(page: Path) -> Iterator[str]:
    for line in commands_named(page):
        name, *rest = line.split()
        if name not in COMMANDS.commands:
            yield f"there is no command {name}"
            continue
        named = {word for word in rest if word.startswith("-")}
        for option in sorted(named - options_of(COMMANDS.commands[name])):
            yield f"the command {name} has no option {option}"


def unknown_options(page: Path) -> Iterator[str]:
    if not ours(page):
        return
    named = {
        word
        for span in spans(page)
        if span.startswith("--")
        for word in re.findall(r"(?<!\S)--[\w-]+", span)
    }
    for option in sorted(named - options_of(COMMANDS) - OTHERS):
        yield f"no command has the option {option}"


def invalid_snippets(page: Path) -> Iterator[str]:
    for block in blocks(page, "python"):
        try:
            compile(block, name_of(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except SyntaxError as error:
            yield f"a snippet is no Python: {error}"


def names_not_imported(page: Path) -> Iterator[str]:
    tree = snippets_of(page)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in OFFERED}
    imported = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    for name in sorted(used - imported):
        yield f"the snippets use {name} without importing it"


def missing_files(page: Path) -> Iterator[str]:
    root = ROOT / "aioqless" if page.name == "how-it-works.md" else ROOT
    for span in spans(page):
        if not re.fullmatch(r"[\w/]+(/|\.py|\.lua)", span):
            continue
        if root == ROOT and not span.startswith("aioqless/"):
            continue
        if not (root / (span if root == ROOT else span.removeprefix("aioqless/"))).exists():
            yield f"there is no file {span}"


def unknown_methods(page: Path) -> Iterator[str]:
    if not ours(page):
        return
    for thing, name in names(page, r"(?<![\w.\"/])(job|queue|worker|client)\.([a-z]\w*)"):
        known = has_attribute(THINGS[thing], name) or f"{thing}.{name}" in EVENTS
        if not known and name not in ("py", "lua"):
            yield f"there is no {thing}.{name}"
    for door, name in names(page, r"\bclient\.(jobs|workers|config)\.([a-z]\w*)"):
        if not has_attribute(DOORS[door], name):
            yield f"there is no client.{door}.{name}"


def unknown_names(page: Path) -> Iterator[str]:
    for first, second in names(page, r"(?<![\w./\-])aioqless\.([A-Za-z]\w*)(?:\.([A-Za-z]\w*))?"):
        if hasattr(aioqless, first):
            inner = getattr(aioqless, first)
            if (
                second
                and not hasattr(inner, second)
                and not find_spec(f"aioqless.{first}.{second}")
            ):
                yield f"there is no aioqless.{first}.{second}"
        elif not find_spec(f"aioqless.{first}") and first not in OPENTELEMETRY | LOGGERS:
            yield f"there is no aioqless.{first}"
    for node in ast.walk(snippets_of(page)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aioqless"):
            module = import_module(node.module or "")
            for name in node.names:
                if not hasattr(module, name.name) and not find_spec(f"{node.module}.{name.name}"):
                    yield f"{node.module} has no {name.name}"


# Of all pages.


def undocumented_options() -> Iterator[str]:
    for option in sorted({*JobOptions.__annotations__, *PutOptions.__annotations__}):
        if f"`{option}`" not in OPTIONS:
            yield f"docs/handlers.md and docs/putting.md lack the option {option}"
    for group in (Settings, ReconnectDelays):
        for field in dataclasses.fields(group):
            flag = field.name.replace("_", "-")
            if not re.search(rf"`{field.name}`|\b{field.name}=|--{flag}\b", WORKERS):
                yield f"the pages on workers lack the setting {field.name}"
    for option, default in SHARED:
        row = rf"^\|.*`{option}`.*\|.*\b{default}\b.*\|"
        if not re.search(row, CONFIGURATION, re.MULTILINE):
            yield f"docs/configuration.md lacks {option} with its default {default}"
    for option in sorted(options_of(COMMANDS)):
        if not re.search(rf"(?<![\w-]){option}(?![\w-])", COMMAND_LINE):
            yield f"no page has the option {option}"
    for command in sorted(COMMANDS.commands):
        if not re.search(rf"\baioqless {command}\b", COMMAND_LINE):
            yield f"no page has the command {command}"


def undocumented_names() -> Iterator[str]:
    pages = "".join(file.read_text("utf-8") for file in (ROOT / "docs/reference").glob("*.md"))
    documented = set(re.findall(r"^`(aioqless\.[\w.]+)`, defined in", pages, re.MULTILINE))
    for package in PUBLIC:
        tree = ast.parse((ROOT / package / "__init__.py").read_text("utf-8"))
        (names,) = (
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        )
        dotted = package.replace("/", ".")
        for name in sorted(names):
            if not {f"{dotted}.{name}", f"aioqless.{name}"} & documented:
                yield f"docs/reference has no {dotted}.{name}"


def undocumented_exceptions() -> Iterator[str]:
    for name, each in vars(errors).items():
        defined = isinstance(each, type) and issubclass(each, errors.AioqlessError)
        if defined and not re.search(rf"^## {name}$", EXCEPTIONS, re.MULTILINE):
            yield f"docs/reference/errors.md lacks {name}"


def undescribed_keys() -> Iterator[str]:
    types = r"^-- (H|L|S|Z|T|stream|channel:) .*(?:\n-- .*)*\nfunction keys\."
    if len(re.findall(types, KEYS, re.MULTILINE)) != KEYS.count("function keys."):
        yield "keys.lua: a key has no comment with its type"
    used = {field for text in LUA.values() for field in re.findall(r"'(x-[a-z-]+)'", text)}
    for field in sorted(used ^ set(re.findall(r"^--   (x-[a-z-]+)", KEYS, re.MULTILINE))):
        yield f"keys.lua: the field {field} has no comment, or isn't used"


def wrong_variables() -> Iterator[str]:
    used = {
        name
        for file in (ROOT / "aioqless").rglob("*.py")
        for name in re.findall(r"\bAIOQLESS_[A-Z_]+[A-Z]\b", file.read_text("utf-8"))
    }
    page = (ROOT / "docs" / "reference" / "environment.md").read_text("utf-8")
    for name in sorted(set(re.findall(r"`(AIOQLESS_\w+)`", page)) ^ (used - NO_VARIABLES)):
        yield f"docs/reference/environment.md and the code differ on {name}"


def wrong_navigation() -> Iterator[str]:
    site = (ROOT / "mkdocs.yml").read_text("utf-8")
    for path, anchor in re.findall(r": ([\w/-]+\.md)#([\w-]+)$", site, re.MULTILINE):
        if anchor not in anchors(ROOT / "docs" / path):
            yield f"mkdocs.yml: {path} has no heading {anchor}"


def wrong_defaults() -> Iterator[str]:
    for page, statement in STATEMENTS:
        if statement not in " ".join((ROOT / "docs" / page).read_text("utf-8").split()):
            yield f"docs/{page} doesn't say {statement!r}"


def wrong_readme() -> Iterator[str]:
    readme = (ROOT / "README.md").read_text("utf-8")
    if not 500 <= len(readme.split()) <= 900:
        yield f"README.md has {len(readme.split())} words, not 500 to 900"
    if readme.partition("```python")[0].count("\n") >= 40:
        yield "README.md: the first code comes after line 40"
    if readme.index("# app/jobs.py") > readme.index("\n## "):
        yield "README.md: the first code comes after a heading"
    marks = [f"<!-- {name} -->" for name in ("demo", "tests", "bench:summary", "/bench:summary")]
    for lacking in (each for each in ("**At least once.**", *marks) if each not in readme):
        yield f"README.md lacks {lacking}"


OF_A_PAGE: tuple[Callable[[Path], Iterator[str]], ...] = (
    broken_links,
    columns_without_heading,
    invalid_command_lines,
    unknown_commands,
    unknown_options,
    invalid_snippets,
    names_not_imported,
    missing_files,
    unknown_methods,
    unknown_names,
)
OF_ALL: tuple[Callable[[], Iterator[str]], ...] = (
    undocumented_options,
    undocumented_names,
    undocumented_exceptions,
    undescribed_keys,
    wrong_variables,
    wrong_navigation,
    wrong_defaults,
    wrong_readme,
)


def main() -> int:
    problems = [f"{name_of(page)}: {each}" for page in PAGES for f in OF_A_PAGE for each in f(page)]
    problems += [each for find in OF_ALL for each in find()]
    for problem in problems:
        print(problem)
    return len(problems) > 0


if __name__ == "__main__":
    sys.exit(main())
