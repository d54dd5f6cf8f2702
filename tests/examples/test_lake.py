"""The lake example, from the first page of the audit to the report."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from deltalake import DeltaTable

from aioqless.contrib import private_redis
from tests.contrib.dashboard.conftest import browsing
from tests.contrib.lake.conftest import write_configuration

ROOT = Path(__file__).parents[2]
PAGES = 12

# Overlapping texts of a chart, and tables that are wider than their place.
OVERLAPS = """
() => [...document.querySelectorAll("svg")].flatMap(svg => {
    const texts = [...svg.querySelectorAll("text:not([opacity='0'])")]
        .map(text => [text.textContent, text.getBoundingClientRect()])
    return texts.flatMap(([one, a], index) => texts.slice(index + 1)
        .filter(([, b]) => a.left + 1 < b.right && b.left + 1 < a.right)
        .filter(([, b]) => a.top + 3 < b.bottom && b.top + 3 < a.bottom)
        .map(([other]) => `${one} / ${other}`))
})
"""
TOO_WIDE = """
() => [...document.querySelectorAll(".scroll")]
    .filter(each => each.scrollWidth > each.clientWidth + 1)
    .map(each => each.textContent)
"""
COLORS = """
() => [
    document.body,
    document.querySelector("section"),
    [...document.querySelectorAll("svg text")].find(text => text.getBoundingClientRect().width)
].map(each => {
    const style = getComputedStyle(each)
    return each.tagName === "text" ? style.fill : style.backgroundColor
})
"""


@dataclass
class ExampleRun:
    """The output of a run of the example, and its folder."""

    folder: Path
    out: str


@pytest.fixture(scope="module")
def example_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleRun]:
    folder, data = (
        tmp_path_factory.mktemp("lake") / "audit",
        Path(tempfile.mkdtemp(prefix="aioqless-")),
    )
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("AIOQLESS_URL", "REDIS_URL")
    }
    command = [
        sys.executable,
        "-m",
        "examples.lake",
        str(folder),
        "--first",
        "multiprocessing.html",
        "--pages",
        str(PAGES),
    ]
    environment |= {
        "AIOQLESS_DATA": str(data),
        "SPARK_CONF_DIR": write_configuration(tmp_path_factory.mktemp("spark") / "conf"),
    }
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    yield ExampleRun(folder, ran.stdout)
    private_redis.stop(data, force=True)
    shutil.rmtree(data)


def test_help_is_printed_without_spark() -> None:
    """The whole example is a long test, which CI runs."""
    command = [sys.executable, "-m", "examples.lake", "--help"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0 and "--pages" in ran.stdout, ran.stderr


@pytest.mark.long
def test_jobs_of_the_audit_are_stored_and_counted(example_run: ExampleRun) -> None:
    assert (
        f"\n{PAGES + 1} events in 1 batches; 0 in quarantine" in example_run.out
    )  # the audit's report is a job, too
    assert re.search(
        rf"^pages +examples\.site_audit\.pages\.visit +{PAGES} ", example_run.out, re.MULTILINE
    )
    table = DeltaTable(example_run.folder / "lake/silver/runs").to_pyarrow_table()
    assert table.num_rows == PAGES + 1 and "1/multiprocessing.html" in table["jid"].to_pylist()


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1000, 1280])
async def test_report_is_legible_in_light_and_dark_mode(
    example_run: ExampleRun, chromium_program: str, width: int
) -> None:
    seen: list[Any] = []
    async with browsing(chromium_program) as browser:
        for scheme in ("light", "dark"):
            page = await browser.new_page(
                color_scheme=scheme, viewport={"width": width, "height": 900}
            )
            await page.goto((example_run.folder / "report.html").as_uri())
            assert await page.evaluate(OVERLAPS) == []
            assert await page.evaluate("document.documentElement.scrollWidth") == width
            if width > 390:
                assert await page.evaluate(TOO_WIDE) == []
            seen.append(await page.evaluate(COLORS))
    (light_page, light_card, light_text), (dark_page, dark_card, dark_text) = seen
    assert _light(light_page) > 240 < _light(light_card) and _light(light_text) < 130
    assert _light(dark_page) < 40 > _light(dark_card) and _light(dark_text) > 140


def _light(color: str) -> float:
    red, green, blue = map(int, re.findall(r"\d+", color)[:3])
    return (red + green + blue) / 3
