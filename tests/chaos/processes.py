"""The processes that put and run jobs; each is replaced when it ends."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.ledger import read
from tests.chaos.producer import QUEUE

GRACE = 1.0
PARK_AFTER = 0.02  # about as long as a job that is called takes
EXPECTED = (
    0,
    -signal.SIGKILL,
    -signal.SIGTERM,
)  # exit codes that are not errors: ordered shutdown, killed, or stopped while starting
SECOND = "second"


@dataclass(eq=False)
class Member:
    """A role, and the process that has it now."""

    role: str
    number: int
    command: list[str]
    environment: dict[str, str]
    clock: Path  # offset of the clock that its processes see: `+600`
    process: subprocess.Popen[bytes] | None = None
    # the read end of its log, if the log goes through a pipe
    reader: subprocess.Popen[bytes] | None = None

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


@dataclass(eq=False)
class Processes:
    """All processes. `keep` replaces each that ends, as a supervisor does in production."""

    folder: Path
    chance: random.Random
    members: list[Member] = field(default_factory=list)
    # logs of processes that ended with an unexpected exit code
    ends: list[str] = field(default_factory=list)
    leaving: set[str] = field(default_factory=set)  # roles that are not replaced any more
    piped: bool = False  # workers' logs go through named pipes, whose readers may be replaced

    def of(self, role: str) -> list[Member]:
        return [member for member in self.members if member.role == role]

    def any(self, role: str) -> Member:
        return self.chance.choice(self.of(role))

    def add_worker(self, url: str, faketime: str | None, name: str | None = None) -> None:
        queues = ["-q", QUEUE, "-q", SECOND]
        level = "info" if self.piped else "warning"
        options = [
            "--shutdown-timeout",
            str(GRACE),
            "--park-after",
            str(PARK_AFTER),
            "--log-json",
            "--log-level",
            level,
            "--url",
            url,
            *(["--name", name] if name else []),
        ]
        self._add(
            "worker", ["-m", "aioqless", "worker", "tests.chaos.jobs", *queues, *options], faketime
        )

    def add_producer(self, url: str, rate: float, faketime: str | None) -> None:
        seed = str(self.chance.randrange(1 << 30))
        self._add("producer", ["-m", "tests.chaos.producer", url, str(rate), seed], faketime)

    def _add(self, role: str, arguments: list[str], faketime: str | None) -> None:
        number = len(self.members)
        clock = self.folder / f"clock-{number}"
        clock.write_text("+0")
        environment = os.environ | {
            "CHAOS_LEDGER": str(self.folder),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        if faketime:
            environment |= {
                "LD_PRELOAD": faketime,
                "FAKETIME_TIMESTAMP_FILE": str(clock),
                "FAKETIME_CACHE_DURATION": "1",
            }
            environment |= {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
        member = Member(role, number, [sys.executable, *arguments], environment, clock)
        self.members.append(member)
        self._start(member)

    def _start(self, member: Member) -> None:
        if self.piped and member.role == "worker":
            self.read_log(member)
        with (self._pipe(member) if member.reader else self._log(member)).open(
            "wb" if member.reader else "ab"
        ) as log:
            member.process = subprocess.Popen(
                member.command,
                env=member.environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def _log(self, member: Member) -> Path:
        return self.folder / f"{member.role}-{member.number}.log"

    def _pipe(self, member: Member) -> Path:
        return self.folder / f"{member.role}-{member.number}.pipe"

    def read_log(self, member: Member) -> None:
        """Start a reader of a member's pipe, unless it has one."""
        if not self._pipe(member).exists():
            os.mkfifo(self._pipe(member))
        if member.reader is None or member.reader.poll() is not None:
            with self._log(member).open("ab") as log:
                member.reader = subprocess.Popen(["cat", str(self._pipe(member))], stdout=log)

    async def keep(self) -> None:
        """Replace processes that end, until canceled."""
        while True:
            for member in self.members:
                if (
                    member.role not in self.leaving
                    and member.process is not None
                    and (code := member.process.poll()) is not None
                ):
                    self._note_end(member, code)
                    self._start(member)
            await asyncio.sleep(0.03)

    def _note_end(self, member: Member, code: int) -> None:
        if code not in EXPECTED:
            self.ends.append(f"{member.role} {member.number} ended with {code}")

    def worker_with(self, what: str, jids: list[str]) -> Member | None:
        """Return a worker whose process has noted `what` of one of the jobs."""
        for member in self.of("worker"):
            if member.process is None or member.process.poll() is not None:
                continue
            notes = read(self.folder, f"worker-{member.process.pid}")
            if any(note.what == what and note.values[0] in jids for note in notes):
                return member
        return None

    async def end(self, member: Member) -> None:
        """Send SIGTERM, and wait until the process has ended."""
        if (process := member.process) is not None:
            member.signal(signal.SIGTERM)
            await asyncio.to_thread(process.wait)

    async def stop_role(self, role: str, patience: float = 30.0) -> None:
        """Stop all processes of a role, and wait until they have ended."""
        self.leaving.add(role)
        for member in self.of(role):
            member.signal(signal.SIGCONT)
            member.signal(signal.SIGTERM)
        for member in self.of(role):
            assert member.process is not None
            try:
                code = await asyncio.to_thread(member.process.wait, patience)
            except subprocess.TimeoutExpired:
                self.ends.append(f"{role} {member.number} did not end when told")
            else:
                self._note_end(member, code)

    def kill_all(self) -> None:
        for member in self.members:
            if member.process is not None and member.process.poll() is None:
                member.process.kill()
                member.process.wait()
            if member.reader is not None:
                member.reader.kill()
                member.reader.wait()
