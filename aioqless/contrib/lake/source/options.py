"""Options of a load or a save, checked before anything is read or written."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, TypeVar

import msgspec

from aioqless.client import Client
from aioqless.client.codec import PlainCodec
from aioqless.client.url import find_url
from aioqless.contrib.encryption import Encryption

_OF_SPARK: Final = {"path", "checkpointlocation", "queryname"}
Given = TypeVar("Given", bound="ClientOptions")


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


class ClientOptions(msgspec.Struct, rename="camel"):
    """Options of every load and save."""

    url: str | None = None
    namespace: str = "ql"

    def client_settings(self) -> ClientSettings:
        """Return how to connect; without `url`, by the environment of this process.

        Raises:
            ValueError: The URL or the namespace is invalid.
        """
        url = find_url(self.url)
        if url is not None:
            Client(url, namespace=self.namespace, codec=PlainCodec())  # checks both
        prefix = "AIOQLESS_ENCRYPTION_"
        keys = {name: value for name, value in os.environ.items() if name.startswith(prefix)}
        return ClientSettings(url, self.namespace, keys)


class LoadOptions(ClientOptions, rename="camel"):
    """Options of `load`."""

    partitions: Annotated[int, msgspec.Meta(ge=1)] | None = None


class SaveOptions(ClientOptions, rename="camel"):
    """Options of `save`: values for rows that lack them, and how rows are put."""

    queue: str | None = None
    klass: str | None = None
    priority: float | None = None
    delay: float | None = None
    retries: Annotated[int, msgspec.Meta(ge=0)] | None = None
    tags: str | None = None
    batch: str = ""
    max_data: Annotated[int, msgspec.Meta(ge=1)] = 1 << 20
    drop_nulls: bool = False
    max_depth: Annotated[int, msgspec.Meta(ge=1)] | None = None
    wait: float = 3600.0
    rejects: str | None = None
    max_rejects: Annotated[int, msgspec.Meta(ge=0)] = 10_000
    counts: str | None = None


def parse_options(kind: type[Given], given: Mapping[str, str]) -> Given:
    """Return the options of `.option(name, value)`, whose names Spark compares without case.

    Raises:
        ValueError: A name is unknown, or a value is invalid.
    """
    known = {name.lower(): name for name in kind.__struct_encode_fields__}
    lower = {name.lower(): value for name, value in given.items()}
    if unknown := sorted(lower.keys() - known.keys() - _OF_SPARK):
        raise ValueError(
            f"there is no option {unknown[0]!r} here; there are {', '.join(sorted(known.values()))}"
        )
    values = {known[name]: value for name, value in lower.items() if value and name in known}
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        what, _, place = str(error).replace("`", "").partition(" - at $.")
        reason = re.sub(r"^Expected |, got .*| \| null", "", what)
        raise ValueError(f"{place} must be {reason} (got {values.get(place)!r})") from None
