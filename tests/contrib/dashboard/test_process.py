"""`aioqless web` as a process."""

from __future__ import annotations

import os
import resource
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest


def start(*options: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "aioqless", *options]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_server_runs_until_sigterm_and_closes_open_streams(
    redis_url: str,
) -> None:
    process = start("web", "--port", "0", "--url", redis_url)
    assert process.stdout
    link = process.stdout.readline().removeprefix("Open ").strip()
    with (
        httpx.Client(base_url=link.partition("?")[0], trust_env=False, timeout=60) as http,
        http.stream("GET", "/live?at=/") as closed,
    ):
        assert closed.status_code == 401
        assert http.get(link).status_code == 303
        stream = http.send(http.build_request("GET", "/live?at=/"), stream=True)
        assert any(line.startswith("data: ") for line in stream.iter_lines())
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in rest


def test_address_other_than_loopback_requires_users(redis_url: str, tmp_path: Path) -> None:
    process = start("web", "--host", "0.0.0.0", "--url", redis_url)
    assert (
        "lets others in: give the dashboard users" in process.communicate(timeout=60)[1]
        and process.returncode == 2
    )
    (tmp_path / "users").write_text("ada admin\n")
    process = start("web", "--users", str(tmp_path / "users"), "--url", redis_url)
    assert (
        "line 1: must be: name role hash" in process.communicate(timeout=60)[1]
        and process.returncode == 2
    )


def test_port_in_use_is_refused_in_a_line(redis_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start("web", "--port", str(port), "--url", redis_url)
        told = process.communicate(timeout=60)[1]
    assert f"127.0.0.1:{port} can't be served: Address already in use" in told
    assert process.returncode == 1 and "Traceback" not in told


def test_printed_line_of_a_user_is_accepted() -> None:
    from aioqless.contrib.dashboard.access import Role, read_users
    from aioqless.contrib.dashboard.passwords import verify

    line, told = start(
        "web-user", "ada", "--role", "admin", AIOQLESS_WEB_PASSWORD="correct horse"
    ).communicate(timeout=60)
    assert told == ""
    ada = read_users([line], "here")["ada"]
    assert (
        ada.role is Role.ADMIN
        and verify("correct horse", ada.password)
        and not verify("wrong one", ada.password)
    )
    refused = start("web-user", "ada", AIOQLESS_WEB_PASSWORD="short").communicate(timeout=60)[1]
    assert "8 characters at least" in refused


def starts_of_requests(port: int | None) -> tuple[bytes, ...]:
    form = (
        f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 500\r\n\r\nname="
    )
    return b"", b"GET /login HTTP/1.1\r\n", form.encode()


@pytest.mark.long
@pytest.mark.parametrize("sent", [0, 1, 2], ids=["nothing", "half headers", "half a body"])
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
def test_idle_connections_stop_no_pages_where_descriptors_are_few(
    redis_url: str, sent: int
) -> None:
    # its Redis takes a connection for each page; the limit is read when the process starts
    command = "ulimit -n 64; exec " + shlex.join([sys.executable, "-m", "aioqless", "web"])
    process = subprocess.Popen(
        ["sh", "-c", f"{command} --port 0 --url {redis_url}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    link = process.stdout.readline().removeprefix("Open ").strip()
    with ExitStack() as stack, httpx.Client(trust_env=False, timeout=15) as http:
        stack.callback(process.communicate)
        stack.callback(process.terminate)
        port = httpx.URL(link).port
        for _ in range(100):  # more than it has descriptors
            idle = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            idle.sendall(starts_of_requests(port)[sent])
        http.follow_redirects = True
        assert http.get(link).status_code == 200
        assert len(list(Path(f"/proc/{process.pid}/fd").iterdir())) < 48
