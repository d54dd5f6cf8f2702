"""Generate docs/reference/*.md: `python -m tests.reference`, or `--check` to compare only.

A page says what is generated where: what stands between `<!-- reference: NAMES -->` and
`<!-- /reference -->` is replaced by the signatures and docstrings of these names, or by a table.
The rest of a page is written by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from tests.pages import GENERATED, ROOT, name_of
from tests.reference.api import Reference
from tests.reference.tables import TABLES

PAGES: Final = sorted((ROOT / "docs" / "reference").glob("*.md"))


def generate() -> dict[Path, str]:
    """Return the text of each page that has a generated part."""
    texts = {page: page.read_text("utf-8") for page in PAGES}
    reference = Reference(
        {
            page.name: [
                name
                for block in GENERATED.finditer(text)
                for name in block["names"].split()
                if name not in TABLES
            ]
            for page, text in texts.items()
        }
    )

    def render(page: Path, block: re.Match[str]) -> str:
        names, before = block["names"], block.string[: block.start()]
        if table := TABLES.get(names):
            body = "\n".join(table())
        else:
            level = 3 if "\n## " in before else 2
            first = not GENERATED.search(before)
            body = reference.render(page.name, names.split(), level, first)
        lines = "\n".join(line.rstrip() for line in body.strip().splitlines())
        lines = re.sub(r"\n{3,}", "\n\n", lines)
        return f"<!-- reference: {names} -->\n\n{lines}\n\n<!-- /reference -->"

    return {
        page: GENERATED.sub(lambda block, page=page: render(page, block), text)  # type: ignore[misc]
        for page, text in texts.items()
        if GENERATED.search(text)
    }


def main(*arguments: str) -> int:
    """Write the pages, or name those that differ."""
    stale = [page for page, text in generate().items() if page.read_text("utf-8") != text]
    if arguments != ("--check",):
        for page, text in generate().items():
            page.write_text(text, "utf-8")
        return 0
    for page in stale:
        print(f"{name_of(page)} is stale: run python -m tests.reference")
    return len(stale) > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
