"""Other programs read a lake's tables: DuckDB, Polars, Streamlit, dbt and a notebook.

They need their own packages: `nox -s readers`.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake")

import pyarrow as pa

from aioqless.contrib.lake.backlog import store_backlog
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.read.database import NAMES
from aioqless.contrib.lake.refresh import refresh
from aioqless.contrib.lake.schema import SNAPSHOTS, TABLES, WORKER_SNAPSHOTS
from tests.contrib.lake.lakes import EARLY, LATE, MIDNIGHT, archive, open_session, raw
from tests.pages import ROOT, blocks
from tests.server import free_port

pytestmark = pytest.mark.readers
EXAMPLE = Path("examples/lake")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Write eight jobs of three namespaces, one of them `{billing}`."""
    lake = Lake(tmp_path_factory.mktemp("readers") / "lake", create=True)
    archive(lake, *EARLY, *LATE)
    refresh(lake, open_session)
    return lake


def test_duckdb_reads_every_table(lake: Lake) -> None:
    from examples.lake.duckdb_lake import connect

    connection = connect(lake.url)
    for view, table in NAMES.items():
        (count,) = connection.execute(f"SELECT count(*) FROM {view}").fetchall()[0]
        assert count == len(raw(lake, table)), table
    of_billing = "SELECT jid FROM events WHERE namespace = '{billing}' ORDER BY jid"
    assert connection.execute(of_billing).fetchall() == [("never",), ("other",)]


def test_polars_reads_runs(lake: Lake) -> None:
    from examples.lake.polars_lake import slowest_classes

    found = slowest_classes(lake.url, date(2026, 11, 21)).to_dicts()
    assert [(row["klass"], row["p95"]) for row in found] == [("Greet", 10.0), ("Send", 4.0)]
    assert slowest_classes(lake.url, date(2026, 11, 22))["klass"].to_list() == ["Greet"]


def test_programs_of_the_page_read_the_lake(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb
    import duckdb_extension_delta

    # DuckDB finds its extension in the home directory, as after a download.
    (extension,) = Path(str(duckdb_extension_delta.__file__)).parent.rglob("*.duckdb_extension")
    (platform,) = duckdb.sql("PRAGMA platform").fetchall()[0]
    installed = tmp_path / ".duckdb/extensions" / f"v{duckdb.__version__}" / platform
    installed.mkdir(parents=True)
    shutil.copy(extension, installed)
    monkeypatch.setenv("HOME", str(tmp_path))
    programs = blocks(ROOT / "docs" / "lake-readers.md", "python")
    assert len(programs) == 2
    for program in programs:
        *statements, last = ast.parse(program).body
        assert isinstance(last, ast.Expr)
        code = f"{ast.unparse(ast.Module(statements, []))}\nprint({ast.unparse(last)})"
        ran = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(lake.url).parent, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert "mail" in ran.stdout or "Greet" in ran.stdout, ran.stdout


def test_streamlit_charts_the_backlog(lake: Lake, chromium_program: str) -> None:
    from playwright.sync_api import expect, sync_playwright

    moment = {"taken": MIDNIGHT, "namespace": "ql", "date": MIDNIGHT.date()}
    rows = {
        SNAPSHOTS: moment | {"queue": "mail", "waiting": 5, "lag": 60.0, "workers": 0},
        WORKER_SNAPSHOTS: moment | {"worker": "ann", "slots": 2, "busy": 1, "version": "v1"},
    }
    for name, row in rows.items():
        schema = TABLES[name].schema
        store_backlog(lake, {name: pa.RecordBatch.from_pylist([row], schema)})
    port = free_port()
    options = f"--server.headless=true --server.address=127.0.0.1 --server.port={port}"
    with subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", EXAMPLE / "dashboard.py", *options.split()],
        env=os.environ | {"AIOQLESS_LAKE": lake.url, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, text=True,
    ) as server, sync_playwright() as playwright:  # fmt: skip
        browser = playwright.chromium.launch(
            executable_path=chromium_program, args=["--no-sandbox"]
        )
        try:
            assert server.stdout and any("URL" in line for line in server.stdout)
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{port}")
            expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(6, timeout=300_000)
            expect(page.get_by_text("Workers, at least")).to_be_visible()
            expect(page.get_by_test_id("stException")).to_have_count(0)
        finally:
            browser.close()
            server.kill()  # it may wait for its browser when it is asked to end


def test_a_dbt_model_is_built_and_its_tests_pass(lake: Lake, tmp_path: Path) -> None:
    import duckdb

    database = tmp_path / "lake.duckdb"
    folders = ["--target-path", str(tmp_path / "target"), "--log-path", str(tmp_path / "logs")]
    project = ["--project-dir", str(EXAMPLE / "dbt"), "--profiles-dir", str(EXAMPLE / "dbt")]
    built = subprocess.run(
        [Path(sys.executable).with_name("dbt"), "build", *project, *folders],
        env=os.environ | {"AIOQLESS_LAKE": lake.url, "LAKE_DATABASE": str(database)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert built.returncode == 0, built.stdout
    with duckdb.connect(str(database)) as connection:
        rows = connection.execute(
            "SELECT queue, ended, failure_rate FROM daily_failure_rate "
            "WHERE namespace = 'ql' ORDER BY day"
        ).fetchall()
    assert rows == [("mail", 2, 1 / 2), ("mail", 4, 1 / 4)], "one was reported a day late"


def test_the_notebook_answers_its_questions(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient
    from traitlets.config import Config

    monkeypatch.setenv("AIOQLESS_LAKE", lake.url)
    notebook: Any = nbformat.read(EXAMPLE / "questions.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    over_files = Config({"KernelManager": {"transport": "ipc"}})  # no port is opened
    NotebookClient(notebook, timeout=120, config=over_files).execute()
    answers = [
        output["data"]["text/plain"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "data" in output
    ]
    by_time, by_hour, recovered = answers
    assert "Greet" in by_time and "job_hours_waited" in by_hour
    assert "dependency" in recovered and "mail-SMTPError" in recovered
