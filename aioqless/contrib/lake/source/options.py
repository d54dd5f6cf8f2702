"""Options of a load or a save, checked before anything is read or written."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from aioqless.client import Client
from aioqless.client.codec import PlainCodec
from aioqless.client.url import find_url
from aioqless.contrib.encryption import Encryption

COMMON = ("url", "namespace")
SPARK_OPTIONS = {"path", "checkpointlocation", "queryname"}


@dataclass(frozen=True)
class ClientSettings:
    """What a task needs to connect: the URL, the namespace and the encryption keys.

    `repr` shows neither the URL, which may have a password, nor the keys. `encryption_keys` are
    those of the driver's environment, since executors have another one.
    """

    url: str | None = field(repr=False)
    namespace: str = "ql"
    encryption_keys: Mapping[str, str] = field(default_factory=dict, repr=False)

    def client(self) -> Client:
        """Return a new client, not yet connected."""
        codec = Encryption.from_environment(self.encryption_keys) or PlainCodec()
        return Client(self.url, namespace=self.namespace, codec=codec)


class Options:
    """The options of `.option(name, value)`, whose names Spark compares without case.

    Args:
        given: The options.
        known: The names that this load or save knows beside `url` and `namespace`.

    Raises:
        ValueError: A name is unknown.
    """

    def __init__(self, given: Mapping[str, str], *known: Collection[str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}
        names = {name.lower(): name for group in (COMMON, *known) for name in group}
        if unknown := sorted(self._given.keys() - names.keys() - SPARK_OPTIONS):
            raise ValueError(
                f"there is no option {unknown[0]!r} here; "
                f"there are {', '.join(sorted(names.values()))}"
            )

    def client_settings(self) -> ClientSettings:
        """Return how to connect; without `url`, by the environment of this process.

        Raises:
            ValueError: The URL or the namespace is invalid.
        """
        url = find_url(self.text("url"))
        namespace = self.text("namespace") or "ql"
        if url is not None:
            Client(url, namespace=namespace, codec=PlainCodec())  # checks both
        return ClientSettings(
            url,
            namespace,
            {
                name: value
                for name, value in os.environ.items()
                if name.startswith("AIOQLESS_ENCRYPTION_")
            },
        )

    def text(self, name: str) -> str | None:
        """Return an option; None if it isn't given or empty."""
        return self._given.get(name.lower()) or None

    def whole(self, name: str, default: int | None, *, least: int = 1) -> int | None:
        """Return an option as an integer of at least `least`."""
        text = self.text(name)
        if text is None:
            return default
        if not text.isdecimal() or int(text) < least:
            raise ValueError(f"{name} must be an integer >= {least} (got {text!r})")
        return int(text)

    def number(self, name: str, default: float | None) -> float | None:
        """Return an option as a number."""
        text = self.text(name)
        try:
            return default if text is None else float(text)
        except ValueError:
            raise ValueError(f"{name} must be a number, not {text!r}") from None

    def truth(self, name: str) -> bool:
        """Return an option that is true or false; false unless given."""
        text = (self.text(name) or "false").lower()
        if text not in ("true", "false"):
            raise ValueError(f"{name} must be true or false, not {text!r}")
        return text == "true"
