"""README and docs/get-started, followed from the first to the last command in an empty folder."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.pages import ROOT
from tests.projects import WITHOUT_PLUGINS

PAGES = [
    (ROOT / "docs" / "get-started" / f"{name}.md").read_text("utf-8")
    for name in ("install", "first-job", "first-worker", "first-test")
]
README = (ROOT / "README.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY = "…"
EXTRAS = set(metadata("aioqless").get_all("Provides-Extra") or ())
# The test has an environment already.
INSTALLATION = re.compile(r"^(?:pip install|python3 -m venv) .*\n", re.MULTILINE)
WORKER = re.compile(r"(?:python -m )?aioqless worker(?!.*--burst)")
PATIENCE = 120  # seconds, on a busy machine


class Reader:
    """Follows pages: writes files, runs commands, compares the output, presses Ctrl-C."""

    def __init__(self, folder: Path, data: Path) -> None:
        self._folder = folder
        self._where = data.parent / f"{data.name}-where"
        self._worker: Terminal | None = None
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AIOQLESS_", "REDIS_URL", "PYTEST_"))
        } | {
            "AIOQLESS_DATA": str(data),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTEST_ADDOPTS": " ".join(WITHOUT_PLUGINS),
            "PYTHONPATH": "",
            "WHERE": str(self._where),
        }

    async def follow(self, page: str) -> None:
        """Do what a page says, block by block."""
        blocks = BLOCK.findall(page)
        for number, (language, text) in enumerate(blocks):
            following = blocks[number + 1 :][:1]
            expected = next((output for kind, output in following if kind == "text"), "")
            if language in ("python", "toml"):
                self._write(text)
            elif language == "sh" and re.match(
                r"(?:python -m )?aioqless worker(?!.*--burst)", text
            ):
                await self._start_worker(text, expected)
            elif language == "sh":
                await self._run(text, expected)
            elif text.startswith("^C\n"):
                await self._stop_worker(text.removeprefix("^C\n"))

    def close(self) -> None:
        if self._worker:
            self._worker.close()
        self._where.unlink(missing_ok=True)

    def _write(self, text: str) -> None:
        path = text.partition("\n")[0].removeprefix("# ")
        (self._folder / path).parent.mkdir(exist_ok=True)
        (self._folder / path).write_text(text)

    async def _run(self, text: str, expected: str) -> None:
        for extras in re.findall(r"pip install .*\[([\w,-]+)\]", text):
            assert set(extras.split(",")) <= EXTRAS
        commands = INSTALLATION.sub("", text.replace(". .venv/bin/activate", "true"))
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-euo",
            "pipefail",
            "-c",
            f"{commands}\npwd > $WHERE",
            cwd=self._folder,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(PATIENCE):
            output = (await process.communicate())[0].decode()
        assert shows(output, expected), f"{text}\nexpected:\n{expected}\nprinted:\n{output}"
        assert process.returncode == 0 or expected, output
        if process.returncode == 0:
            self._folder = Path(self._where.read_text().strip())

    async def _start_worker(self, text: str, expected: str) -> None:
        program, *arguments = shlex.split(text)
        if program != "python":
            arguments.insert(0, str(Path(sys.executable).parent / program))
        self._worker = Terminal(arguments, self._environment, self._folder, (250, 12))
        await self._worker_shows(expected)

    async def _stop_worker(self, expected: str) -> None:
        assert self._worker
        self._worker.press("\x03")
        await self._worker_shows(expected)
        assert await self._worker.ended() == 0
        self._worker.close()
        self._worker = None

    async def _worker_shows(self, expected: str) -> None:
        assert self._worker
        self._worker.read_output()
        for _ in range(PATIENCE * 10):
            if shows(self._worker.text, expected):
                return
            await asyncio.sleep(0.1)
            self._worker.read_output()
        pytest.fail(f"expected:\n{expected}\nshown:\n{self._worker.text}")


def shows(output: str, expected: str) -> bool:
    """Return whether the expected lines are in the output, in order, whatever the spacing.

    `…` in an expected line matches anything.
    """
    lines = iter(" ".join(line.split()) for line in output.splitlines())
    patterns = (
        ".*".join(re.escape(part) for part in " ".join(line.split()).split(ANY))
        for line in expected.splitlines()
    )
    return all(any(re.fullmatch(pattern, line) for line in lines) for pattern in patterns)


@pytest.fixture
def reader(tmp_path: Path, data: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path, data)
    yield reader
    reader.close()


async def test_get_started_works_as_written(reader: Reader) -> None:
    for page in PAGES:
        await reader.follow(page)


async def test_hello_world_of_the_readme_works_as_written(reader: Reader) -> None:
    await reader.follow(README.partition("\n## ")[0])
