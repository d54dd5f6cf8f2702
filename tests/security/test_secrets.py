"""Secrets in files, errors and logs."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import aioqless
from aioqless import Client

HERE = Path(aioqless.__file__).parent
FILES = sorted(HERE.rglob("*.py"))
FORBIDDEN = {"eval", "exec", "compile", "__import__"}
PICKLES = {
    "contrib/lake/spark/delta_source.py",  # from a Spark driver to its own tasks
    # between a worker and its own processes
    *(
        f"contrib/process_pool/{name}.py"
        for name in ("ipc", "child", "child_main", "context_vars", "pool")
    ),
}


def called(tree: ast.AST) -> set[str]:
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def imported(tree: ast.AST) -> set[str]:
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    return names | {
        node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(HERE)))
def test_no_file_evaluates_text_or_unpickles_foreign_data(file: Path) -> None:
    tree = ast.parse(file.read_text())
    assert not called(tree) & FORBIDDEN
    assert not imported(tree) & {"marshal", "shelve", "dill", "cloudpickle"}
    if str(file.relative_to(HERE)) not in PICKLES:
        assert "pickle" not in imported(tree)


async def test_passwords_are_in_no_error_and_no_repr(tmp_path: Path) -> None:
    client = Client("redis://ann:hunter2@127.0.0.1:1/0", timeout=1)
    with pytest.raises(Exception, match="can't connect") as refused:
        async with client:
            await client.queues()
    told = f"{refused.value!r} {refused.value} {client!r} {client.endpoint}"
    assert "hunter2" not in told


async def test_passwords_are_in_no_log_line_of_a_worker(client: Client, tmp_path: Path) -> None:
    text = "import aioqless\n\n@aioqless.job\ndef greet(job: aioqless.Job) -> None:\n    pass\n"
    (tmp_path / "jobs.py").write_text(text)
    url = client.endpoint["url"].replace("//", "//ann:hunter2@")
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "aioqless", "worker", "jobs", "--burst", "--url", url),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    async with asyncio.timeout(60):
        output, _ = await worker.communicate()  # it ends, since the password has never worked
    assert b"invalid username-password pair" in output and b"hunter2" not in output
    assert worker.returncode == 3
