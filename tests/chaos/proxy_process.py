"""The proxy between all clients and Redis, as its own process.

It prints its port, then executes its input: a word and a number per line.
"""

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
                        proxy.silence()
                    else:
                        proxy.cut_off()
                case "split":
                    proxy.split = int(number)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
