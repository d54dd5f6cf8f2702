"""Object stores on this machine, for tests: one speaks the protocol of S3, one that of Azure."""

from __future__ import annotations

import hmac
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlsplit

from tests.server import free_port

BUCKET = "lake-tests"
AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


@contextmanager
def running_store(log: Path = Path(os.devnull)) -> Iterator[dict[str, str]]:
    """Run the store with an empty bucket; yields the environment with which delta-rs finds it.

    It logs a line for each request.
    It has a process of its own: delta-rs holds the interpreter's lock while it waits for replies.
    """
    port = free_port()
    program = f"from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.DEVNULL, stderr=output
        ) as server,
    ):
        try:
            endpoint = f"http://127.0.0.1:{port}"
            _make_bucket(endpoint, server)
            yield {
                "AWS_ENDPOINT_URL": endpoint,
                "AWS_ALLOW_HTTP": "true",
                "AWS_CONDITIONAL_PUT": "etag",
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
                "AWS_REGION": "us-east-1",
            }
        finally:
            server.terminate()


def _make_bucket(endpoint: str, server: subprocess.Popen[bytes]) -> None:
    _send(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT"), server)


def _send(request: urllib.request.Request, server: subprocess.Popen[bytes]) -> None:
    """Send a request as soon as the server listens."""
    for _ in range(1_200):
        assert server.poll() is None, "the object store ended"
        try:
            urllib.request.urlopen(request, timeout=30).close()
            return
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            time.sleep(0.1)
    raise TimeoutError("the object store doesn't listen")


@contextmanager
def running_azurite(folder: Path) -> Iterator[dict[str, str]]:
    """Run Azure's emulator with an empty container; yields the environment of `running_store`."""
    port = free_port()
    command = ("npx", "--yes", "--package", "azurite@3.37.0", "azurite-blob", "--silent")
    options = ("--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder))
    with subprocess.Popen(
        [*command, *options],
        start_new_session=True,  # npx starts it as a child
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            endpoint = f"http://127.0.0.1:{port}"
            _make_container(f"{endpoint}/{AZURITE_ACCOUNT}/{BUCKET}", server)
            yield {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": endpoint}
        finally:
            os.killpg(server.pid, signal.SIGTERM)


def _make_container(url: str, server: subprocess.Popen[bytes]) -> None:
    """Make a container by a request signed with the emulator's own, public key."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = [*(f"{name}:{value}" for name, value in headers.items())]
    resource = f"/{AZURITE_ACCOUNT}{urlsplit(url).path}\nrestype:container"
    signed = "\n".join(["PUT", *[""] * 11, *lines, resource])
    digest = hmac.digest(b64decode(AZURITE_KEY), signed.encode(), "sha256")
    headers["Authorization"] = f"SharedKey {AZURITE_ACCOUNT}:{b64encode(digest).decode()}"
    _send(urllib.request.Request(f"{url}?restype=container", method="PUT", headers=headers), server)
