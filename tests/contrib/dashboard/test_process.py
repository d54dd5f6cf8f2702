"""`aioqless web` as a process."""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from aioqless.contrib.http import Role, Token, Tokens
from aioqless.contrib.http.tokens import read_tokens

HASHED = f'[ada]\nsecret = "{Token("ada", "x" * 32).hashes[0]}"\nrole = "admin"\n'


def start(*options: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "aioqless", *options]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


@contextmanager
def running(*words: str, **environment: str) -> Iterator[str]:
    """Run a server; yields its URL."""
    process = start(*words, "--log-json", **environment)
    assert process.stderr
    try:
        for line in process.stderr:
            if (event := json.loads(line))["event"].endswith(".started"):
                yield event["url"]
                return
    finally:
        process.terminate()
        process.communicate(timeout=60)


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


@pytest.mark.parametrize(
    ("options", "tokens", "said"),
    [
        (["--host", "0.0.0.0"], "", "lets others in: give the dashboard --tokens"),
        (["--socket", "web.sock"], "", "lets others in: give the dashboard --tokens"),
        (
            ["--host", "0.0.0.0", "--proxy-header", "X-User"],
            "",
            "needs the addresses of the proxies",
        ),
        (["--proxy-header", "X-User"], HASHED, "not both"),
        (["--role", "ada=admin"], "", "--role is for users of --proxy-header"),
        (["--trusted-proxies", "*"], "", "must be an address"),
        ([], HASHED.replace("admin", "none"), "none of the tokens has a role"),
        ([], f'[ada]\nsecret = "{"x" * 40}"', "the secret of ada must be its hash"),
        (["--tokens", "/nowhere/tokens"], "", "/nowhere/tokens: No such file"),
        (["--job-link", "x=javascript:{value}"], "", "the link of 'x' must be an http(s) URL"),
    ],
)
def test_insecure_settings_are_refused_at_the_start(
    redis_url: str, options: list[str], tokens: str, said: str
) -> None:
    process = start("web", *options, "--port", "0", "--url", redis_url, AIOQLESS_TOKENS=tokens)
    assert said in process.communicate(timeout=60)[1]
    assert process.returncode


def test_unix_socket_is_served_to_a_proxy_that_names_users(redis_url: str, tmp_path: Path) -> None:
    path = tmp_path / "web.sock"
    with socket.socket(socket.AF_UNIX) as left:  # by a server that was killed
        left.bind(str(path))
    options = ("--proxy-header", "X-User", "--role", "ada=admin", "--url", redis_url)
    process = start("web", "--socket", str(path), *options)
    with ExitStack() as stack:
        stack.callback(process.communicate)
        stack.callback(process.terminate)
        for line in process.stderr or ():
            if "startup complete" in line:
                break
        assert path.stat().st_mode & 0o777 == 0o660
        transport = httpx.HTTPTransport(uds=str(path))
        http = stack.enter_context(httpx.Client(transport=transport, base_url="http://web"))
        assert http.get("/queues").status_code == 403
        assert http.get("/audit-log", headers={"X-User": "eve"}).status_code == 403
        assert http.get("/audit-log", headers={"X-User": "ada"}).status_code == 200
        assert "Secure" in http.get("/", headers={"X-Forwarded-Proto": "https"}).headers.get(
            "set-cookie", "Secure"
        )
        again = start("web", "--socket", str(path), *options)
        assert "Address already in use" in again.communicate(timeout=60)[1] and again.returncode
    assert process.returncode == 0 and not path.exists()


def test_port_in_use_is_refused_in_a_line(redis_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start("web", "--port", str(port), "--url", redis_url)
        told = process.communicate(timeout=60)[1]
    assert f"127.0.0.1:{port} can't be served: Address already in use" in told
    assert process.returncode == 1 and "Traceback" not in told


def test_printed_token_is_accepted() -> None:
    table, told = start("token", "ada", "--role", "admin", "--may-put", "app.*").communicate(
        timeout=60
    )
    secret = told.rpartition(" ")[2].strip()
    (token,) = read_tokens(table, "here")
    assert (token.name, token.role, token.may_put) == ("ada", Role.ADMIN, ["app.*"])
    found = Tokens([token]).find(secret)
    assert found and found[0] == token and secret not in table
    for options, said in (
        ("a-b", "letters, digits"),
        ("ada --role boss", "must be none"),
    ):
        refused = start("token", *options.split())
        assert said in refused.communicate(timeout=60)[1] and refused.returncode


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
