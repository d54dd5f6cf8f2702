"""The size of the package and of its pages. Limits are lowered when it shrinks.

A commit that raises one says why.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "aioqless"
FILES = sorted(PACKAGE.rglob("*.py"))
CORE_AND_CLI = [file for file in FILES if PACKAGE / "contrib" not in file.parents]
REFERENCES = ("command-line.md", "comparison.md", "monitoring.md")  # may be long
CORE = [file for file in CORE_AND_CLI if PACKAGE / "cli" not in file.parents]


def count_lines_of_code(file: Path) -> int:
    """Count lines that aren't blank, comments, docstrings or imports."""
    text = file.read_text("utf-8")
    others: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
                others.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        number not in others and bool(line.strip()) and not line.lstrip().startswith("#")
        for number, line in enumerate(text.splitlines(), 1)
    )


def test_core_has_few_lines_of_code() -> None:
    generated = PACKAGE / "store" / "generated_commands.py"
    assert sum(count_lines_of_code(file) for file in CORE if file != generated) <= 11_204


def test_package_has_few_lines() -> None:
    assert sum(len(file.read_text("utf-8").splitlines()) for file in FILES) <= 54_862


@pytest.mark.parametrize(
    ("folder", "most"),
    [
        ("aioqless/contrib/partitions", 2_083),
        ("aioqless/contrib/lake", 5_391),
        ("tests/contrib/lake", 4_343),
    ],
)
def test_folder_has_few_lines(folder: str, most: int) -> None:
    files = (ROOT / folder).rglob("*.py")
    assert sum(len(file.read_text("utf-8").splitlines()) for file in files) <= most


def test_worker_has_few_files() -> None:
    folder = PACKAGE / "worker"  # what runs beside the jobs counts as one
    assert len([*folder.glob("*.py"), folder / "parts"]) <= 16


def test_any_is_rare() -> None:
    nodes = (node for file in CORE_AND_CLI for node in ast.walk(ast.parse(file.read_text("utf-8"))))
    assert sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes) <= 117


def test_page_is_read_in_a_sitting() -> None:
    guides = [each for each in (ROOT / "docs").rglob("*.md") if each.name not in REFERENCES]
    words = {page.name: len(page.read_text("utf-8").split()) for page in guides}
    assert {name: count for name, count in words.items() if count > 1500} == {}


def test_pages_have_few_words() -> None:
    pages = (ROOT / "docs").rglob("*.md")
    assert sum(len(page.read_text("utf-8").split()) for page in pages) <= 72_000
