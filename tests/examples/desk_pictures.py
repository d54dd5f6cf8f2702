"""Make the screenshots of the review desk in the docs: `python -m tests.examples.desk_pictures`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from aioqless.testing import server
from tests.examples.desk import Person, chromium, desk
from tests.programs import find

DOCS = Path(__file__).parents[2] / "docs"
VIEW: Any = {"viewport": {"width": 1240, "height": 860}, "device_scale_factor": 1.5}
JUDGED = {"Ada": "113142131", "Grace": "3113", "Alan": "14"}  # judgments by person


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        server() as url,
        desk(url, Path(folder), 60) as address,
        chromium(find("chromium") or "chromium") as browser,
    ):
        people = {}
        for name, keys in JUDGED.items():
            person = people[name] = Person(
                browser.new_context(color_scheme="light", **VIEW), address
            ).sign_in(name)
            person.press("n")
            for key in keys:
                person.judge(key)
        ada = people["Ada"]
        ada.judge("s")
        ada.page.locator("#note").fill("It says what it does, but not when one would want it.")
        ada.page.wait_for_timeout(9000)
        ada.page.screenshot(path=DOCS / "desk.png")
        ada.page.emulate_media(color_scheme="dark")
        ada.page.screenshot(path=DOCS / "desk-dark.png")


if __name__ == "__main__":
    main()
