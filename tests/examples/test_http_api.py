"""The example of the HTTP API: the request that it prints is answered."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from tests.server import free_port

ROOT = Path(__file__).parents[2]


def test_printed_request_puts_a_receipt_whose_result_is_awaited(redis_url: str) -> None:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.http_api", "--port", str(port)],
        cwd=ROOT,
        env={**os.environ, "AIOQLESS_URL": redis_url, "AIOQLESS_NAMESPACE": "http-example"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and process.stderr
    try:
        words = shlex.split(process.stdout.readline())
        headers = dict(
            words[number + 1].split(": ", 1) for number, each in enumerate(words) if each == "-H"
        )
        body = words[words.index("-d") + 1]
        while "Uvicorn running" not in (logged := process.stderr.readline()):
            assert logged
        with httpx.Client(trust_env=False, headers=headers, timeout=60) as http:
            answers = [http.post(words[1], content=body).json() for _ in range(2)]
            assert [each["existing"] for each in answers] == [False, True]
            url = f"{words[1]}/results/{answers[0]['jid']}"
            result = http.get(url, params={"wait": 30}).json()
            description = http.get(f"http://127.0.0.1:{port}/openapi.json").json()
    finally:
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
    assert (result["state"], result["result"]) == ("complete", {"order": 7, "total": 3.5})
    assert description["components"]["schemas"]["receipt_data"]["required"] == ["order", "lines"]
    assert json.loads(body)["order"] == 7 and "Traceback" not in rest
