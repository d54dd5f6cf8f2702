"""Makes a site of pages that are written for readers of the repository.

The README is the home page. A link to a file outside docs/ leads to the repository. An entry of
the navigation may name a heading: `monitoring.md#log-events`. Guides come first in search results.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure import StructureItem
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Navigation, Section
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)\s#]+)")
_SECONDARY = ("changelog.md", "comparison.md", "decisions/", "reference/")
_SCHEME = "heading:"  # MkDocs looks for a file that is named as a link without a scheme


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Mark the entries of the navigation that name a heading."""
    config.nav = _mark_headings(config.nav)
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the home page."""
    readme = (ROOT / "README.md").read_text("utf-8")
    home = _LINK.sub(lambda link: posixpath.relpath(link[1], "docs"), readme)
    files.append(File.generated(config, "index.md", content=home))
    return files


def on_nav(nav: Navigation, *, config: MkDocsConfig, files: Files) -> Navigation:  # noqa: ARG001 (MkDocs passes it)
    """Let the marked entries lead to their headings."""
    for link in _links(nav.items):
        path, _, heading = link.url.removeprefix(_SCHEME).partition("#")
        if not (file := files.get_file_from_path(path)):
            raise PluginError(f"the navigation names {path}, which doesn't exist")
        link.url = f"{file.url}#{heading}"
    return nav


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 (MkDocs passes it)
    """Let links that leave docs/ lead to the repository, and rank the page for the search."""
    if page.file.src_uri.startswith(_SECONDARY):
        page.meta["search"] = {"boost": 0.1}
    folder = posixpath.dirname(page.file.src_uri)

    def rewrite(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, link[1]))
        if path.startswith("docs/"):
            return link[1]
        if path == "README.md":
            return posixpath.relpath("index.md", folder or ".")
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{config.extra['repository']}/{kind}/main/{path}"

    return _LINK.sub(rewrite, markdown)


def _mark_headings(nav: object) -> object:
    match nav:
        case dict():
            return {title: _mark_headings(item) for title, item in nav.items()}
        case list():
            return [_mark_headings(item) for item in nav]
        case str() if ".md#" in nav:
            return f"{_SCHEME}{nav}"
        case _:
            return nav


def _links(items: Sequence[StructureItem]) -> Iterator[Link]:
    for item in items:
        if isinstance(item, Link) and item.url.startswith(_SCHEME):
            yield item
        if isinstance(item, Section):
            yield from _links(item.children)
