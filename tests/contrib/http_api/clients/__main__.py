"""Generates clients of the program in docs/http-api.md, and runs programs that use them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from aioqless import Client, Worker
from aioqless.testing import server
from tests.programs import find

HERE = Path(__file__).parent
PAGE = (HERE.parents[3] / "docs" / "http-api.md").read_text("utf-8")
PACKAGES = {"openapi-fetch": "^0.17", "openapi-typescript": "^7.13", "typescript": "^5.9"}
GO = """package main

import ("encoding/json"; "fmt"; "net/http"; "os"; "strings")

func main() {
%s
	if err != nil { panic(err) }
	var put struct { Jid string }
	json.NewDecoder(response.Body).Decode(&put)
	fmt.Println(put.Jid)
}
"""


def example(language: str) -> str:
    """Return the first block of the page in a language."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


class Programs:
    """Runs programs in a folder, with the address and the secret of the API."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url

    def write(self, name: str, text: str) -> None:
        """Write a file, with the address of the API in place of the page's."""
        (self._folder / name).write_text(text.replace("https://api.example", self._url))

    async def run(self, *words: str) -> str:
        """Run a program; return what it prints."""
        own = {"API_URL": self._url, "GOPROXY": "off", "GOFLAGS": "-mod=mod", "no_proxy": "*"}
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=self._folder,
            env={**os.environ, **own},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        printed, _ = await process.communicate()
        if process.returncode:
            sys.exit(f"{' '.join(words)} has failed: {printed.decode()[-2000:]}")
        return printed.decode().strip()

    async def run_typescript(self) -> None:
        """Generate, check and run the client in TypeScript."""
        self.write("package.json", json.dumps({"type": "module", "dependencies": PACKAGES}))
        await self.run("npm", "install", "--no-audit", "--no-fund", "--silent")
        await self.run("npx", "openapi-typescript", "openapi.json", "-o", "api.d.ts")
        shutil.copy(HERE / "client.ts", self._folder)
        options = ["--strict", "--target", "es2022", "--module", "nodenext"]
        self.write("node.d.ts", "declare const process: { env: Record<string, string> };")
        await self.run("npx", "tsc", *options, "client.ts", "node.d.ts")
        assert await self.run("node", "client.js") == "Order 7: tea data"

    async def run_go(self) -> None:
        """Generate, compile and run the client in Go, and the program of the page."""
        generate = ["openapi-generator-cli", "generate", "-g", "go", "-i", "openapi.json"]
        await self.run(*generate, "-o", "api", "--additional-properties", "withGoMod=false")
        shutil.rmtree(self._folder / "api" / "test", ignore_errors=True)
        self.write("go.mod", "module example.org/shop\n\ngo 1.19\n")
        shutil.copy(HERE / "client.go", self._folder)
        assert await self.run("go", "run", "client.go") == "Order 9007199254740993: tea 404"
        self.write("page.go", GO % example("go"))
        assert (await self.run("go", "run", "page.go")).startswith("shop-")

    async def run_php(self) -> None:
        """Run the program of the page in PHP."""
        self.write("page.php", f"<?php\n{example('php')}")
        assert (await self.run("php", "page.php")).startswith("shop-")


async def main() -> None:
    """Serve the API with a worker, and run the programs."""
    os.environ["SHOP_SECRET"] = secret = secrets.token_hex(32)
    names: dict[str, Any] = {}
    exec(example("python"), names)
    with server() as redis, tempfile.TemporaryDirectory() as folder:
        async with Client(redis) as client, Worker(client, [names["receipt"]]):
            config = uvicorn.Config(names["application"](client), log_level="warning")
            http, listening = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
            serving = asyncio.create_task(http.serve([listening]))
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            headers = {"Authorization": f"Bearer {secret}"}
            async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as ask:
                description = (await ask.get("/openapi.json")).text
            programs = Programs(Path(folder), url)
            programs.write("openapi.json", description)
            known = {"npx": programs.run_typescript, "go": programs.run_go, "php": programs.run_php}
            for program, run in known.items():
                if find(program):
                    await run()
                    print(f"{program}: put a job, and got its result")
                elif os.environ.get("AIOQLESS_NO_SKIPS"):
                    sys.exit(f"{program} is not installed")
                else:
                    print(f"{program}: skipped, since it is not installed")
            http.should_exit = True
            with suppress(asyncio.CancelledError):
                await serving


if __name__ == "__main__":
    asyncio.run(main())
