"""The example of fair turns: small files don't wait for a large one, and the picture shows it."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

from aioqless import Client
from examples.fair_import import jobs
from examples.fair_import.__main__ import SLOTS, run
from examples.fair_import.picture import draw

LARGE, SMALL = 100, 3


async def test_small_files_wait_for_the_large_one_only_without_turns(client: Client) -> None:
    without = await run(client, jobs.load_in_order, LARGE, SMALL)
    in_order = [start.customer for start in without]
    assert Counter(in_order) == {"Acme": LARGE, "Bolt": SMALL, "Crab": SMALL, "Dune": SMALL}
    assert "Acme" not in in_order[LARGE + SLOTS :]
    fair = await run(client, jobs.load, LARGE, SMALL)
    in_turns = [start.customer for start in fair]
    assert Counter(in_turns) == Counter(in_order)
    assert in_turns[-SLOTS:] == ["Acme"] * SLOTS
    picture = ElementTree.fromstring(draw({"Without": without, "With": fair}))
    dots = [each for each in picture.iter() if each.tag.endswith("circle")]
    assert len(dots) == 2 * len(fair) + 4  # and the legend
