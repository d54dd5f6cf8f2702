"""The contents of the pages, to be compared with the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OF_OTHERS = "coming-from"  # pages that also mention the names and options of other systems

# A generated part of a page, in docs/reference/.
GENERATED = re.compile(
    r"<!-- reference: (?P<names>.*?) -->\n(?P<text>.*?)<!-- /reference -->", re.DOTALL
)
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:[A-Z_]+=\S+ )*(?:python -m )?aioqless (.+?)(?: >>? \S+)?$")
_SPAN = re.compile(r"`([^`\n]+)`")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def ours(page: Path) -> bool:
    return OF_OTHERS not in name_of(page)


def read(page: Path) -> str:
    """Return what a page has beside generated parts."""
    return GENERATED.sub("", page.read_text("utf-8"))


def blocks(page: Path, language: str) -> list[str]:
    """Return the page's code blocks of a language."""
    return [code for said, code in _BLOCK.findall(read(page)) if said == language]


def prose(page: Path) -> str:
    """Return the page without its code blocks."""
    return _BLOCK.sub("", read(page))


def spans(page: Path) -> list[str]:
    """Return inline code of sentences and tables."""
    return _SPAN.findall(prose(page))


def code(page: Path) -> Iterator[str]:
    """Return all code on the page except that for browsers."""
    yield from (block for language, block in _BLOCK.findall(read(page)) if language != "js")
    yield from spans(page)


def anchors(page: Path) -> set[str]:
    """Return the page's headings as anchors of GitHub."""
    headings = re.findall(r"^#+ +(.+)$", _BLOCK.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[tuple[str, str]]:
    """Return the page's links to files: path and anchor, if any."""
    text = _BLOCK.sub("", page.read_text("utf-8"))
    found = re.findall(r"\]\(([^)\s]+)\)", _SPAN.sub("", text))
    return [
        (path, anchor)
        for path, _, anchor in (link.partition("#") for link in found)
        if "://" not in path
    ]


def command_lines(page: Path) -> list[str]:
    """Return the command lines of our program in code blocks, with comments.

    Variables before a line, and the file to which it writes, are left out.
    """
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    return [call[1] for line in lines if (call := _COMMAND.match(line))]


def commands_named(page: Path) -> list[str]:
    """Return the commands of our program named in sentences, without arguments."""
    return [
        call[1] for span in spans(page) if (call := re.match(r"(?:python -m )?aioqless (.+)", span))
    ]
