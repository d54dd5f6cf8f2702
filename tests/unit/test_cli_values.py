"""Addresses and sizes on the command line."""

from __future__ import annotations

import pytest
import typer

from aioqless.cli.health_check import parse_address
from aioqless.cli.worker_options import parse_size


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", (None, 8080)),
        (":8080", (None, 8080)),
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("[::1]:80", ("::1", 80)),
        ("0", (None, 0)),
    ],
)
def test_address_is_a_port_with_or_without_a_host(
    text: str, address: tuple[str | None, int]
) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "here", "here:", "80x", "-1", "65536", "²"])
def test_address_without_a_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be PORT or HOST:PORT"):
        parse_address(text)


def test_size_is_in_bytes_or_with_a_binary_unit() -> None:
    assert [parse_size(text) for text in ("1", "2K", "512M", "3G")] == [1, 2048, 512 << 20, 3 << 30]


@pytest.mark.parametrize("text", ["", "0", "M", "1.5G", "-1", "1T", "1MB"])
def test_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="must be a number of bytes"):
        parse_size(text)
