"""Search finds, and pages show what GitHub shows."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.pages import PAGES, ROOT, name_of

pytestmark = pytest.mark.site

SITE = ROOT / "site"
# What people search for, and the section that is to explain it.
SEARCHES = {
    "dead letter queue": "faq/#why-was-my-failed-job-not-retried",
    "idempotency": "locks/#idempotency",
    "deduplication": "unique-jobs/#deduplication-drop-delay-debounce",
    "throttle": "limits/#rate-limits",
    "saga": "recipes/#saga",
    "batch callback": "job-sets/#when-all-have-ended",
    "resume": "long-jobs/",
    "debounce": "unique-jobs/#debounce",
    "graceful shutdown": "shutdown/#graceful-shutdown",
    "at least once": "guarantees/#at-least-once-delivery",
    "exactly once": "faq/#is-a-job-ever-run-twice",
    "visibility timeout": "locks/",
    "dependency injection": "middleware/#dependency-injection",
    "health check": "health-checks/",
}
LONGEST_LINES_OF_CUT_CODE = """
[...document.querySelectorAll('.md-typeset pre > code')]
  .filter(code => code.scrollWidth > code.clientWidth + 1)
  .map(code => code.innerText.split('\\n').reduce((a, b) => a.length > b.length ? a : b))
"""
COUNTED = {"li", "pre", "table", "tr", "td", "th", "blockquote", "img", "h1", "h2", "h3", "h4"}


class Content(HTMLParser):
    """The text of a page without white space, and how many elements of each kind it has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.elements: dict[str, int] = {}
        self._hidden = 0
        self.feed(html)
        self.close()
        self.text = re.sub(r"[\s¶]", "", self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("button", "svg")
        if tag in COUNTED:
            self.elements[tag] = self.elements.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("button", "svg")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += data


def rendered(page: Path) -> str:
    """Return a page of the repository as the site shows it, without the buttons at its head."""
    folder = SITE if page.parent == ROOT else SITE / page.relative_to(ROOT / "docs").parent
    if page.stem != "README":
        folder /= page.stem
    html = (folder / "index.html").read_text("utf-8")
    article = re.search(r"<article class=\"md-content__inner.*?>(.*)</article>", html, re.DOTALL)
    assert article, page
    return re.sub(r"<a [^>]*md-content__button.*?</a>", "", article[1], flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_shows_what_github_shows(page: Path) -> None:
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    on_github = Content(markdown.render(page.read_text("utf-8")))
    on_site = Content(rendered(page))
    assert on_site.elements == on_github.elements
    assert on_site.text == on_github.text


async def test_no_code_is_cut_at_1300_pixels_and_nothing_is_loaded_from_elsewhere(
    chromium_program: str,
) -> None:
    playwright = pytest.importorskip("playwright.async_api")
    loaded: set[str] = set()
    cut: list[tuple[str, str]] = []
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=chromium_program, args=["--no-sandbox"]
        )
        tab = await browser.new_page(viewport={"width": 1300, "height": 900})
        tab.on("request", lambda request: loaded.add(request.url.partition(":")[0]))
        for page in sorted(SITE.rglob("index.html")):
            await tab.goto(page.as_uri())
            lines = await tab.evaluate(LONGEST_LINES_OF_CUT_CODE)
            cut += [(page.parent.name, line) for line in lines]
        await browser.close()
    assert (cut, loaded) == ([], {"file"})


@pytest.mark.parametrize(("phrase", "section"), SEARCHES.items())
def test_search_leads_to_the_section_that_explains(phrase: str, section: str) -> None:
    index = json.loads((SITE / "search" / "search_index.json").read_text("utf-8"))
    found = {
        each["location"]
        for each in index["docs"]
        if phrase
        in re.sub("<.*?>", "", f"{each['title']} {each['text']}").lower().replace("-", " ")
    }
    assert section in found
