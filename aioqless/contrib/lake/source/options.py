"""Options of a load or a save: read by name, with what is wrong said before anything is read or
written."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from aioqless.client import Client
from aioqless.client.codec import PlainCodec
from aioqless.client.url import find_url
from aioqless.contrib.encryption import Encryption

COMMON = ("url", "namespace")
OF_SPARK = {"path", "checkpointlocation", "queryname"}


@dataclass(frozen=True)
class Where:
    """Which namespace on which Redis. Its text doesn't show the URL, which may have a password."""

    url: str | None = field(repr=False)
    namespace: str = "ql"
    seal_keys: Mapping[str, str] = field(
        default_factory=dict, repr=False
    )  # of the driver's environment; executors have another

    def client(self) -> Client:
        codec = Encryption.from_environment(self.seal_keys) or PlainCodec()
        return Client(self.url, namespace=self.namespace, codec=codec)


class Options:
    """What was given by `.option(name, value)`; Spark doesn't tell capitals apart. Raises
    ValueError for names that nothing takes."""

    def __init__(self, given: Mapping[str, str], *known: Collection[str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}
        takes = {name.lower(): name for names in (COMMON, *known) for name in names}
        if unknown := sorted(self._given.keys() - takes.keys() - OF_SPARK):
            raise ValueError(
                f"there is no option {unknown[0]!r} here; there are {', '.join(sorted(set(takes.values())))}"
            )

    def where(self) -> Where:
        """Without `url`, the one of the driver's environment, as for a client; it is looked up
        here, since executors have another."""
        url = find_url(self.text("url"))
        namespace = self.text("namespace") or "ql"
        if url is not None:
            Client(url, namespace=namespace, codec=PlainCodec())
        return Where(
            url,
            namespace,
            {name: value for name, value in os.environ.items() if name.startswith("AIOQLESS_SEAL")},
        )

    def text(self, name: str) -> str | None:
        return self._given.get(name.lower()) or None

    def whole(self, name: str, default: int | None, *, least: int = 1) -> int | None:
        text = self.text(name)
        if text is None:
            return default
        if not text.isdecimal() or int(text) < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, not {text!r}")
        return int(text)

    def number(self, name: str, default: float | None) -> float | None:
        text = self.text(name)
        try:
            return default if text is None else float(text)
        except ValueError:
            raise ValueError(f"{name} must be a number, not {text!r}") from None

    def truth(self, name: str) -> bool:
        text = (self.text(name) or "false").lower()
        if text not in ("true", "false"):
            raise ValueError(f"{name} must be true or false, not {text!r}")
        return text == "true"
