"""Board: what pages are made of and acts act on."""

from __future__ import annotations

from collections import OrderedDict

from aioqless.client import Client
from aioqless.contrib.dashboard.access import Access
from aioqless.contrib.dashboard.bulk import Bulks
from aioqless.contrib.dashboard.redaction import Redaction
from aioqless.contrib.dashboard.sampler import Sampler

MOST_SERVED = 1000


class LastFew(OrderedDict[str, "dict[str, object] | None"]):
    """What workers said of themselves when they were asked last; of so many of them."""

    def __setitem__(self, name: str, said: dict[str, object] | None) -> None:
        super().__setitem__(name, said)
        while len(self) > MOST_SERVED:
            self.popitem(last=False)


class Board:
    """What is shown: the client's queues, the latest sample of them, acts that are under way; and
    who may see what of it."""

    def __init__(self, client: Client, access: Access) -> None:
        self.client = client
        self.access = access
        self.redaction = Redaction(access.redact)
        self.sampler = Sampler(client)
        self.bulks = Bulks(client)
        self.served = LastFew()
