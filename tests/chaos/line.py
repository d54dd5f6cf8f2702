"""The line between everybody and Redis, as a process of its own: it says its port, then does what
it reads, a word and a number a line."""

from __future__ import annotations

import asyncio
import sys

from tests.client.proxy import Proxy


async def main(upstream: str) -> None:
    async with Proxy(upstream) as proxy:
        proxy.about = b"EVAL"
        print(proxy.port, flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            word, number = line.split()
            match word:
                case "cut_off":
                    proxy.cut_off()
                case "tear":
                    proxy.tear = int(number)
                case "cut":
                    proxy.cut = int(number)
                case "drop":
                    proxy.drop = int(number)
                case "delay":
                    proxy.delay, proxy.seconds = int(number), 1.5
                case "silent":
                    proxy.silent = bool(int(number))
                    if proxy.silent:
                        proxy.hush()
                    else:
                        proxy.cut_off()
                case "split":
                    proxy.split = int(number)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
