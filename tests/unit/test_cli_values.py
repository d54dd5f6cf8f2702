"""Values on the command line: addresses, sizes, and the options of a worker."""

from __future__ import annotations

import argparse

import pytest

from aioqless.cli.http_server import parse_address
from aioqless.cli.worker_options import WorkerOptions, parse_options, parse_size


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", ("127.0.0.1", 8080)),
        (":8080", ("127.0.0.1", 8080)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]:80", ("::1", 80)),
        ("0", ("127.0.0.1", 0)),
    ],
)
def test_address_without_a_host_is_of_loopback(text: str, address: tuple[str, int]) -> None:
    assert parse_address("health", text) == address


@pytest.mark.parametrize("text", ["", "here", "here:", "80x", "-1", "65536", "²"])
def test_address_without_a_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be PORT or HOST:PORT"):
        parse_address("health", text)


def test_size_is_in_bytes_or_with_a_binary_unit() -> None:
    assert [parse_size(text) for text in ("1", "2K", "512M", "3G")] == [1, 2048, 512 << 20, 3 << 30]


@pytest.mark.parametrize("text", ["", "0", "M", "1.5G", "-1", "1T", "1MB"])
def test_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be a number of bytes"):
        parse_size(text)


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("a", {"modules": ["a"]}),
        ("a -q x b --burst c", {"modules": ["a", "b", "c"], "queue": ["x"], "burst": True}),
        ("-- a", {"modules": ["a"]}),
        ("a --queue=x -qy -c5", {"modules": ["a"], "queue": ["x", "y"], "concurrency": 5}),
        ("a --no-scheduler", {"modules": ["a"], "scheduler": False}),
        ("a --no-scheduler --scheduler", {"modules": ["a"]}),
        ("a --log-json", {"modules": ["a"], "log_json": True}),
        ("a --log-console", {"modules": ["a"], "log_json": False}),
        ("a --max-memory 5M -w 2", {"modules": ["a"], "max_memory": 5 << 20, "workers": 2}),
        ("a --shutdown-timeout -1", {"modules": ["a"], "shutdown_timeout": -1.0}),
        ("--paused --status-fd 4 a", {"modules": ["a"], "paused": True, "status_fd": 4}),
    ],
)
def test_options_of_a_worker_may_stand_before_and_after_modules(
    line: str, given: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIOQLESS_NAMESPACE", raising=False)
    assert parse_options(line.split()) == WorkerOptions(**given)  # type: ignore[arg-type]  # values of any field


def test_namespace_of_a_worker_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIOQLESS_NAMESPACE", "50%")
    assert parse_options(["a"]).namespace == "50%"
    assert parse_options(["a", "--namespace", "other"]).namespace == "other"
    with pytest.raises(SystemExit) as ended:
        parse_options(["--help"])
    assert ended.value.code == 0 and "AIOQLESS_NAMESPACE; default: 50%" in capsys.readouterr().out
    monkeypatch.setenv("AIOQLESS_NAMESPACE", "")
    assert parse_options(["a"]).namespace == "ql"


def test_help_of_a_worker_lists_every_option_with_its_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        parse_options(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("usage: aioqless worker [OPTIONS] MODULE... Run jobs. SIGTERM")
    assert (
        "--shutdown-timeout SECONDS Graceful-shutdown timeout, in seconds. (default: 25.0)" in shown
    )
    assert "--scheduler, --no-scheduler" in shown and "--log-json, --log-console" in shown
    assert "--status-fd" not in shown and "Show this message and exit." in shown
