"""A fake language model behind a real HTTP server, which counts its calls."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def answer(messages: list[dict[str, str]]) -> dict[str, Any]:
    """Return the next action: look twice, then draft a mail, then end."""
    looked = [message["text"] for message in messages if message["role"] == "tool"]
    question = messages[0]["text"]
    if len(looked) < 2:
        return {"tool": "search", "text": f"{question} {['causes', 'remedies'][len(looked)]}"}
    if len(looked) == 2:
        return {"tool": "mail", "text": f"About {question}: {'; '.join(looked)}"}
    return {"tool": "", "text": looked[-1]}


class Model(BaseHTTPRequestHandler):
    """Answers POST /answer, whose body has the messages so far."""

    calls = 0

    def do_POST(self) -> None:
        """Answer one request."""
        type(self).calls += 1
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = json.dumps(answer(body["messages"])).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serve() -> Iterator[str]:
    """Serve the model within the block; yield its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/answer"
        server.shutdown()
