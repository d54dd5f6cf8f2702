"""The response time of each dashboard page with a million jobs: `python -m tests.bench.web`.

There are 200 queues, 500 workers, 200 failure groups, and metrics of 60 klasses for 8 hours. The
dashboard is a separate process. The times are those of a request over loopback, with the processor
time of the dashboard and of Redis beside it; the difference is waiting for a processor, which is
zero on an idle machine. Pages that show all queues or workers are requested so slowly that no
answer is cached, as for a person.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx

from aioqless import Client
from aioqless.contrib.dashboard.dashboard import RECENT
from aioqless.testing import server
from aioqless.worker.run_counts import Series
from tests.reported_runs import report_runs

TOKEN = "what lets a measurement of pages in"
PORTION = 5_000
LOOK = ("/", "/queues", "/workers", "/jobs")  # pages that read all queues, workers or jobs
_FILL = """
local ns, first, last = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local now, total, queues = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local failure = string.rep('  File "shop/mail.py", line 12, in send\\\\n', 12)
for i = first, last do
  local jid = string.format('%032x', i * 2654435761)
  local queue = 'queue-' .. (i % 5 == 0 and 0 or math.floor(i / 7) % queues)
  local key, state, worker, place = ns .. ':j:' .. jid, 'waiting', '', i % 10
  if i <= 2000 then
    state, worker = 'running', 'worker-' .. i % 500
    redis.call('ZADD', ns .. ':q:' .. queue .. '-locks', now + 3600, jid)
    redis.call('ZADD', ns .. ':w:' .. worker .. ':jobs', now + 3600, jid)
    redis.call('ZADD', ns .. ':workers', now, worker)
  elseif place < 6 then
    redis.call('ZADD', ns .. ':q:' .. queue .. '-work', -i / 1e10, jid)
  elseif place == 6 then
    state = 'scheduled'
    redis.call('ZADD', ns .. ':q:' .. queue .. '-scheduled', now + i, jid)
  elseif place < 9 then
    state = 'failed'
    local group = 'queue-' .. math.floor(i / 10) % 200 .. '-ValueError'
    redis.call('SADD', ns .. ':failures', group)
    redis.call('LPUSH', ns .. ':f:' .. group, jid)
    redis.call('HSET', key, 'failure', '{"group":"' .. group .. '","message":"Traceback\\\\n'
      .. failure .. 'ValueError: not an address","when":'
      .. math.floor(now - (total - i) / total * 86400) .. ',"worker":"worker-1"}')
  else
    state = 'complete'
    redis.call('ZADD', ns .. ':completed', now - i, jid)
  end
  redis.call('HSET', key, 'jid', jid, 'klass', 'shop.mail.send' .. i % 50,
    'data', '{"to":"customer' .. i .. '@example.com","token":"x"}',
    'priority', 0, 'tags', '["welcome"]', 'state', state, 'worker', worker, 'expires', 0,
    'queue', queue, 'retries', 5, 'remaining', 5, 'time', now)
  redis.call('RPUSH', key .. '-history',
    '[' .. math.floor(now) .. ',"put",{"q":"' .. queue .. '"}]')
  redis.call('ZADD', ns .. ':queues', i, queue)
  if i % 100 == 0 then redis.call('ZADD', ns .. ':t:welcome', i, jid) end
  local day = string.format('%.0f', now - now % 86400)
  if i % 7 == 0 then redis.call('HINCRBY', ns .. ':s:run:' .. day .. ':' .. queue, 'total', 1) end
  if i % 6 == 0 then redis.call('HINCRBY', ns .. ':s:wait:' .. day .. ':' .. queue, 'total', 1) end
end
redis.call('ZADD', ns .. ':tags', 'NX', 1000, 'welcome')
"""


async def main(jobs: int, queues: int, rounds: int) -> None:
    with server() as url:
        async with Client(url) as client:
            now = time.time()
            fill = client.redis.register_script(_FILL)
            for first in range(1, jobs + 1, PORTION):
                await fill(
                    keys=["ql"], args=[first, min(first + PORTION - 1, jobs), now, jobs, queues]
                )
            await _report_runs(client, now)
            jid = (await client.jobs.failed_jids("queue-7-ValueError"))[0]
            held = await client.queue("queue-1").put(
                "shop.report", {}, depends=(await client.queue("queue-1").jids("waiting", count=30))
            )
            redis = int((await client.redis.info("server"))["process_id"])
            print(f"{jobs:,} jobs, {len(await client.queues())} queues, "
            f"{len(await client.workers.counts())} workers,"
                  f" {len(await client.jobs.failed_counts())} groups\n\n"
                  "| page | p50, ms | p95, ms | CPU p50 | CPU p95 | KiB "
                  "|\n|---|---|---|---|---|---|")  # fmt: skip
        await _measure(url, pages(jid, held, jobs), rounds, redis)


async def _report_runs(client: Client, now: float) -> None:
    counts = Series()
    counts.failures, counts.run_seconds, counts.buckets = 1, 0.9, {18: 3, 19: 7, 24: 1, 74: 11}
    rows = [(f"queue-{n % 30}", f"shop.mail.send{n}", counts.values()) for n in range(60)]
    for minute in range(480, 0, -1):
        await report_runs(
            client, now - minute * 60, rows, worker="worker-7", memory=90 << 20, busy=3,
            version="v1" if minute > 60 else "v2",
        )  # fmt: skip


def pages(jid: str, held: str, jobs: int) -> dict[str, str]:
    return {
        "overview": "/",
        "queues": "/queues", "queues, last page": "/queues?offset=150&sort=name",
        "queues, filtered by name": "/queues?q=77",
        "queue, waiting": "/queue?name=queue-0",
        "queue, waiting, offset 100,000": f"/queue?name=queue-0&offset={jobs // 10}",
        "queue, scheduled": "/queue?name=queue-0&tab=scheduled",
        "queue, running": "/queue?name=queue-0&tab=running",
        "queue, breakdown": "/queue?name=queue-0&tab=breakdown",
        "queue, statistics": "/queue?name=queue-0&tab=statistics",
        "failures": "/failures", "failures by group": "/failures?by=group&offset=175",
        "failures of an error": "/group?error=ValueError",
        "classes": "/classes", "class": "/class?name=shop.mail.send7", "job sets": "/sets",
        "failure group": "/group?name=queue-7-ValueError",
        "failed job": f"/job?jid={jid}", "job with 30 dependencies": f"/job?jid={held}",
        "completed": "/jobs?filter=state:complete",
        "completed, a minute": "/jobs?filter=state:complete+age:>10m+age:<11m",
        "all jobs by data": "/jobs?filter=customer:4711",
        "all jobs, to be deleted": "/jobs?filter=-state:complete&act=cancel",
        "workers": "/workers", "worker": "/worker?name=worker-7", "tags": "/tags",
        "tag": "/jobs?filter=tag:welcome",
        "search for a jid": f"/jobs?filter={jid}", "search for a klass": "/jobs?filter=send49",
        "search without a result": "/jobs?filter=nothing-like-it",
        "recurring": "/recurring", "tracked": "/tracked", "redis": "/redis",
        "configuration": "/config", "audit log": "/audit-log",
    }  # fmt: skip


def main_thread_ms(*pids: int) -> float:
    """Return the ms for which the main threads of processes used a processor."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e6


async def _measure(url: str, addresses: dict[str, str], rounds: int, redis: int) -> None:
    command = [sys.executable, "-m", "aioqless", "web", "--port", "0", "--url", url, "--log-json"]
    environment = {**os.environ, "AIOQLESS_WEB_TOKEN": TOKEN}
    dashboard = subprocess.Popen(  # noqa: ASYNC220  nothing else happens here
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert dashboard.stderr
    try:
        started = next(line for line in dashboard.stderr if "web.started" in line)
        found = re.search(r"http://[\d.:]+", started)
        assert found
        async with httpx.AsyncClient(base_url=found[0], trust_env=False, timeout=30) as http:
            await http.get("/", params={"token": TOKEN})
            for name, address in addresses.items():
                times, works, size = [], [], 0
                looks = address.partition("?")[0] in LOOK
                for _ in range(rounds // 2 if looks else rounds):
                    await asyncio.sleep(RECENT + 0.1 if looks else 0)
                    began, worked = time.perf_counter(), main_thread_ms(dashboard.pid, redis)
                    answer = await http.get(address)
                    times.append((time.perf_counter() - began) * 1000)
                    works.append(main_thread_ms(dashboard.pid, redis) - worked)
                    assert answer.status_code == 200, (address, answer.text[:500])
                    size = len(answer.content)
                figures = [
                    each
                    for some in (times[1:], works[1:])
                    for each in (statistics.median(some), statistics.quantiles(some, n=20)[-1])
                ]
                print(
                    f"| {name} | {' | '.join(f'{each:.0f}' for each in figures)} | "
                    f"{size / 1024:.0f} |",
                    flush=True,
                )
    finally:
        dashboard.terminate()
        dashboard.wait(60)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--queues", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=41)
    options = parser.parse_args()
    asyncio.run(main(options.jobs, options.queues, options.rounds))
