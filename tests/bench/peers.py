"""The queue libraries that are measured: installation, configuration, processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.bench.meters import session_pids
from tests.bench.server import Server

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aioqless-bench"

Figures = dict[str, Any]


class Missing(Exception):
    """A program that a library needs is not installed on this machine."""


@dataclass(frozen=True)
class Peer:
    """A queue library.

    `packages` are installed by pip, or by npm for Node; the first is the library itself. Those of
    Ruby must be on the machine.
    """

    name: str
    packages: tuple[str, ...] = ()
    language: str = "python"  # or node, ruby
    at_once: bool = True  # runs 100 jobs at once, and puts for 100 callers at once
    many: bool = False  # has a bulk put
    share: float = 1.0  # share of the jobs that the fast libraries drain
    setup: str = ""  # non-default settings, and what a reader should know

    @cached_property
    def program(self) -> list[str]:
        """Return the command that runs its driver."""
        if self.language != "python":
            driver = f"{self.name}.{'cjs' if self.language == 'node' else 'rb'}"
            return [
                shutil.which(self.language) or self.language,
                str(ROOT / "tests/bench/drivers" / driver),
            ]
        python = str(self._home / "bin/python") if self.packages else sys.executable
        return [python, "-m", f"tests.bench.drivers.{self.name}"]

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(ROOT), "NODE_PATH": str(self._home / "node_modules")}

    def install(self) -> None:
        """Install the library into its own environment, unless done before. Raises Missing."""
        if self.language == "ruby" and not shutil.which(self.name):
            raise Missing(f"there is no {self.name} on this machine")
        if self.language == "node" and not (shutil.which("node") and shutil.which("npm")):
            raise Missing("there is no node with npm on this machine")
        done = self._home / "installed.json"
        if not self.packages or (
            done.exists() and json.loads(done.read_text()) == list(self.packages)
        ):
            return
        self._home.mkdir(parents=True, exist_ok=True)
        print(f"installing {self.name} in {self._home}", flush=True)
        if self.language == "node":
            commands = [
                [
                    "npm",
                    "install",
                    "--no-audit",
                    "--no-fund",
                    "--prefix",
                    str(self._home),
                    *self.packages,
                ]
            ]
        else:
            python = str(self._home / "bin/python")
            commands = [
                [sys.executable, "-m", "venv", str(self._home)],
                [python, "-m", "pip", "install", "-q", *self.packages],
            ]
        for command in commands:
            ended = subprocess.run(
                command, cwd=self._home, capture_output=True, text=True, check=False
            )
            if ended.returncode:
                raise Missing(
                    f"`{' '.join(command[-len(self.packages) - 2 :])}` failed: "
                    f"{_last_line(ended.stderr)}"
                )
        done.write_text(json.dumps(self.packages))

    def versions(self) -> str:
        """Return the versions of the installed packages and of their interpreter."""
        if self.language == "ruby":
            code = f"require '{self.name}'; puts \"#{{Sidekiq::VERSION}}, Ruby #{{RUBY_VERSION}}\""
            found_versions = subprocess.run(
                [self.program[0], "-e", code], capture_output=True, text=True, check=True
            )
            return f"{self.name} {found_versions.stdout.strip()}"
        if self.language == "node":
            node = subprocess.run(
                [self.program[0], "--version"], capture_output=True, text=True, check=True
            ).stdout.strip()
            found = {
                name: _version_of_npm(self._home / "node_modules" / name) for name in self.packages
            }
            return ", ".join(
                [*(f"{name} {version}" for name, version in found.items()), f"Node {node}"]
            )
        names = [package.partition("[")[0] for package in self.packages] or [
            "aioqless",
            "redis",
            "hiredis",
            "uvloop",
        ]
        code = (
            "import sys; from importlib.metadata import version; print(', '.join(f'{name} "
            "{version(name)}' for name in sys.argv[1:]))"
        )
        return subprocess.run(
            [self.program[0], "-c", code, *names], capture_output=True, text=True, check=True
        ).stdout.strip()

    @property
    def _home(self) -> Path:
        return CACHE / self.name


PEERS = [
    Peer("aioqless", many=True,
        setup="Keeps what was completed, with its history, as is its default"),
    Peer("bullmq", ("bullmq", "ioredis"), language="node", many=True,
        setup="Removes completed jobs"),
    Peer("sidekiq", language="ruby", many=True,
        setup="Threads; a job is taken from a list, and lost if its worker is killed"),
    Peer("taskiq", ("taskiq", "taskiq-redis", "redis", "hiredis", "uvloop"),
        setup="Redis streams; no result backend"),
    Peer("saq", ("saq[redis]", "redis", "hiredis", "uvloop", "typing_extensions"),
        setup="`ttl=-1`: no results"),
    Peer("arq", ("arq", "redis", "hiredis", "uvloop"), setup="`keep_result=0`"),
    Peer("streaq", ("streaq", "coredis", "uvloop"), many=True, setup="`ttl=0`: no results"),
    Peer("celery", ("celery[redis]", "kombu", "redis", "hiredis"), at_once=False, share=0.1,
        setup="Prefork, one child; results ignored"),
    Peer(
        "rq", ("rq", "redis", "hiredis"), at_once=False, many=True, share=0.05,
        setup="SimpleWorker: its default forks for each job, which costs more; `result_ttl=0`",
    ),
]  # fmt: skip


def installed(peers: Sequence[Peer]) -> tuple[list[Peer], dict[str, str]]:
    """Return the libraries that could be installed, and by name why the others could not."""
    present: list[Peer] = []
    left_out: dict[str, str] = {}
    for peer in peers:
        try:
            peer.install()
            present.append(peer)
        except Missing as missing:
            left_out[peer.name] = str(missing)
            print(f"{peer.name} is left out: {missing}", flush=True)
    return present, left_out


class Setup:
    """One library with its own Redis: runs its client and its worker, each in its own process."""

    def __init__(self, peer: Peer, server: Server, folder: Path) -> None:
        self.peer = peer
        self.server = server
        self._folder = folder
        self._out = folder / f"{peer.name}.out"
        self._log = folder / f"{peer.name}.log"

    def put(self, how: str, job: str, count: int) -> Figures:
        """Put jobs in one of the driver's ways and return {jobs, seconds, cpu}."""
        return self.drive(how, job, str(count))

    def drive(self, *arguments: str) -> Figures:
        """Run a command of the driver and return the figures that it prints."""
        command = [*self.peer.program, *arguments]
        ended = subprocess.run(
            command,
            env=self._environment(),
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError(
                f"{self.peer.name} could not {arguments[0]}: {_last_line(ended.stderr)}"
            )
        figures: Figures = json.loads(ended.stdout.splitlines()[-1])
        return figures

    @contextmanager
    def producers(self, count: int, jobs: int, interval: float) -> Iterator[Producers]:
        """Start processes that each put some jobs when `run` is called, one at a time.

        Args:
            count: Number of processes.
            jobs: Number of jobs of each.
            interval: Seconds between two of its jobs; 0: as fast as it can.
        """
        processes = [
            subprocess.Popen(
                [*self.peer.program, "steady", *map(str, (jobs, interval, n * interval / count))],
                env=self._environment(),
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for n in range(count)
        ]
        try:
            yield Producers(processes)
        finally:
            for process in processes:
                process.kill()
                process.communicate()

    @contextmanager
    def worker(self, jobs: int = 0, *, fresh: bool = True) -> Iterator[int]:
        """Run a worker that reports after a number of jobs.

        Yields its pid, which is also its session id. The worker is killed with -9 when the block
        ends.
        """
        if fresh:
            self._out.unlink(missing_ok=True)
        with self._log.open("w") as log:
            process = subprocess.Popen(
                [*self.peer.program, "work"],
                env=self._environment(jobs),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                yield process.pid
            finally:
                kill_session(process)

    def report(self, pid: int, patience: float) -> Figures:
        """Wait for the worker's report: {first, last, pid}."""
        self._await(self._out.exists, pid, patience)
        report: Figures = json.loads(self._out.read_text())
        return report

    def notes(self, count: int, pid: int, patience: float) -> list[float]:
        """Wait until the jobs have recorded this number of notes, and return them."""
        self._await(lambda: len(self._notes()) >= count, pid, patience)
        return self._notes()

    def _notes(self) -> list[float]:
        return (
            [float(line) for line in self._out.read_text().splitlines()]
            if self._out.exists()
            else []
        )

    def _await(self, ready: Callable[[], bool], pid: int, patience: float) -> None:
        deadline = time.monotonic() + patience
        while not ready():
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{self.peer.name} was not done within {patience:.0f} s; its log ends: "
                    f"{self._has_reported()}"
                )
            if not session_pids(pid):
                raise RuntimeError(f"{self.peer.name}'s worker ended: {self._has_reported()}")
            time.sleep(0.05)

    def _has_reported(self) -> str:
        return self._log.read_text()[-800:]

    def _environment(self, jobs: int = 0) -> dict[str, str]:
        bench = {"BENCH_URL": self.server.url, "BENCH_JOBS": str(jobs), "BENCH_OUT": str(self._out)}
        return os.environ | self.peer.environment | bench


class Producers:
    """Processes that put jobs at the same time. They are ready to when this is made."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        self._processes = processes
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError("a producer ended before it had put a job")

    def run(self) -> list[Figures]:
        """Let all of them begin, and return {jobs, seconds, cpu} of each."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        return [json.loads(process.communicate()[0]) for process in self._processes]


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill with -9 the process that leads a session and all processes of the session."""
    while pids := session_pids(process.pid):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def _last_line(text: str) -> str:
    """Return the last line of the output, where programs report what failed."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "it said nothing")


def _version_of_npm(folder: Path) -> str:
    version: str = json.loads((folder / "package.json").read_text())["version"]
    return version
