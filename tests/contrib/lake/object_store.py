"""An object store on this machine that speaks S3's protocol, for tests."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers.processes import free_port

BUCKET = "lake-tests"


@contextmanager
def running_store() -> Iterator[dict[str, str]]:
    """Run the store with an empty bucket; yields the environment with which delta-rs finds it.

    It has a process of its own: delta-rs holds the interpreter's lock while it waits for replies.
    """
    port = free_port()
    program = f"from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
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
    request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
    for _ in range(600):
        assert server.poll() is None, "the object store ended"
        try:
            urllib.request.urlopen(request, timeout=30).close()
            return
        except urllib.error.URLError:
            time.sleep(0.1)
    raise TimeoutError("the object store doesn't listen")
