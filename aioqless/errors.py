"""What can go wrong, as a tree, and the one table from a script's refusal to its class.

    AioqlessError
    ├── ScriptError            a script refused; nothing was changed: .command .code .detail
    │   ├── NoSuchJob          NOJOB
    │   ├── LockLost           LOCKLOST   another run holds the job
    │   ├── WrongState         BADSTATE
    │   ├── InvalidArgument    BADARG
    │   ├── QueueFull          FULL, OOM  put: the queue has reached its maximum length, or Redis is at its memory limit
    │   ├── AlreadyThere       EXISTS     put: there is a job with this jid or unique key
    │   ├── HasDependents      HELD       cancel: a job that depends on it isn't among those to cancel
    │   ├── StaleRequest       REPEATED   a repeated request came after a later one of its line
    │   ├── NoResult           NORESULT   a job isn't complete, or no result is kept of it
    │   ├── NoSuchWorker       NOWORKER   nobody listens under this name
    │   └── NameTaken          NAMETAKEN  another worker has this name
    ├── JobFailed              a job whose outcome was waited for has failed
    ├── NotObeyed              a worker refused an order, or did not answer
    ├── NotDurable             a write is done, but not yet where durability says that it must be
    ├── InvalidData            a job's data can't be stored, or isn't what its handler takes
    │   └── DecryptionError    or can't be trusted or read
    ├── UnknownKlass           no handler claims a klass
    ├── DuplicateKlass         two do
    ├── MissingExtra           a package isn't installed that comes with one of aioqless' extras
    ├── ServerUnavailable      a private server can't be found, started, reached or stopped
    └── ProcessDied            the process that performed a job died of it

Trouble with the connection stays redis-py's own (redis.exceptions.ConnectionError and
TimeoutError)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class AioqlessError(Exception):
    """The root of the project's errors."""


class ScriptError(AioqlessError):
    """A script refused its call, before it changed anything."""

    def __init__(self, command: str, code: str, detail: dict[str, Any]) -> None:
        self.command = command
        self.code = code
        self.detail = detail
        super().__init__(f"{command}: {self.told()}")

    def told(self) -> str:
        """What happened, in one line."""
        about = ", ".join(
            f"{name} {value!r}" for name, value in self.detail.items() if name != "why"
        )
        return (
            f"{self.detail.get('why', self.code)} ({about})"
            if about
            else str(self.detail.get("why", self.code))
        )

    @property
    def jid(self) -> str | None:
        """The job in question, where the refusal names one."""
        return self.detail.get("jid")


class NoSuchJob(ScriptError):
    """There is no job (or recurring job) with this jid."""


class LockLost(ScriptError):
    """The job runs, but for somebody else: its lock expired and was taken, or an operator moved
    it."""

    @property
    def holder(self) -> str | None:
        """The worker that holds the lock now."""
        return self.detail.get("holder")


class WrongState(ScriptError):
    """The job isn't in a state in which this can be done."""

    @property
    def state(self) -> str | None:
        """The state it is in."""
        return self.detail.get("state")


class InvalidArgument(ScriptError):
    """An argument is missing or malformed: .detail has its name, its value and why."""

    def told(self) -> str:
        value = self.detail.get("value")
        return f"{self.detail.get('argument')} {'' if value is None else repr(value) + ' '}{self.detail.get('why')}"


class AlreadyThere(ScriptError):
    """There is a job with this jid or unique key already, `.jid`, and put was told to raise;
    nothing was put."""


class HasDependents(ScriptError):
    """The job can't be cancelled while .detail["dependent"] waits for it: cancel both in one
    call."""


class StaleRequest(ScriptError):
    """A repeated request arrived after its caller had gone on to the next; it was not carried out
    again."""


class NoSuchWorker(ScriptError):
    """No worker listens under this name: none runs, it hasn't begun to listen yet, or it is cut off
    from Redis just now."""


class NoResult(ScriptError):
    """The job isn't complete, or its handler doesn't keep results (`@job(result_ttl=seconds)`), or
    no longer this one."""


class JobFailed(AioqlessError):
    """A job whose outcome somebody waited for has failed: .jid .group .message"""

    def __init__(self, jid: str, group: str, message: str) -> None:
        super().__init__(f"job {jid} failed in {group}: {message}")
        self.jid = jid
        self.group = group
        self.message = message


class NameTaken(ScriptError):
    """Another worker has this stable name, and isn't proven gone: .detail says which process where,
    and for how long it was silent."""

    def told(self) -> str:
        where = f"process {self.detail.get('pid')} on {self.detail.get('host')}"
        return (
            f"the name {self.detail.get('worker')!r} belongs to {where}, which was heard of {self.detail.get('silent')} s ago: "
            "end that one, or give this one another name"
        )


class NotObeyed(AioqlessError):
    """A worker refused what it was told, or didn't answer in time; then it may still obey."""


class QueueFull(ScriptError):
    """No room for new jobs: the queue holds as many as its `<queue>-max-length` allows (.detail has
    queue, length, limit), or Redis is at its `maxmemory`. What is there can be worked off; a put
    may wait for room, `put(..., wait=seconds)`."""


class NotDurable(AioqlessError):
    """It is done, but replicas or disks that `durability` asks for don't have it yet: a fail-over
    now may lose it."""

    def __init__(self, missing: str) -> None:
        super().__init__(f"it is done, but {missing}: a fail-over now may lose it")


class InvalidData(AioqlessError):
    """Data that is not JSON, is `false`, is too large, or is not what the job's handler takes."""


class DecryptionError(InvalidData):
    """Data that can't be trusted or not be read: sealed with a key that isn't here, for another
    klass, changed, or not sealed at all."""


class UnknownKlass(AioqlessError):
    """No handler of this worker claims the job's klass."""


class DuplicateKlass(AioqlessError):
    """Two handlers claim one klass."""


class MissingExtra(AioqlessError, ImportError):
    """A package that comes with an extra of aioqless isn't installed, or can't be imported:
    `.extra`, and `.name` of the module."""

    def __init__(self, extra: str, error: ImportError) -> None:
        package = (error.name or "a package").partition(".")[0]
        what = (
            f"{package} is not installed"
            if isinstance(error, ModuleNotFoundError)
            else f"{package} can't be used ({error})"
        )
        super().__init__(
            f'{what}. Install it with: pip install "aioqless[{extra}]"', name=error.name
        )
        self.extra = extra


class ServerUnavailable(AioqlessError):
    """A private server can't be found, started, reached or stopped.

    The message says why and what to do.
    """


class ProcessDied(AioqlessError):
    """The process that performed a job ended before the job did: `code` is its exit code, or the
    negative number of a signal."""

    def __init__(self, code: int) -> None:
        self.code = code
        names = {-number: number.name for number in signal.Signals}
        how = f"exit code {code}" if code >= 0 else f"signal {names.get(code, -code)}"
        super().__init__(f"the process that performed it ended with {how}")


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Import packages of an extra within this block.

    Raises:
        MissingExtra: if one of them can't be imported.
    """
    try:
        yield
    except MissingExtra:
        raise
    except ImportError as error:
        if (error.name or "").partition(".")[
            0
        ] == "aioqless":  # no package is missing; this is a mistake of ours
            raise
        raise MissingExtra(extra, error) from None


_CLASSES: dict[str, type[ScriptError]] = {
    "NOJOB": NoSuchJob,
    "LOCKLOST": LockLost,
    "BADSTATE": WrongState,
    "BADARG": InvalidArgument,
    "EXISTS": AlreadyThere,
    "FULL": QueueFull,
    "OOM": QueueFull,
    "HELD": HasDependents,
    "REPEATED": StaleRequest,
    "NOWORKER": NoSuchWorker,
    "NORESULT": NoResult,
    "NAMETAKEN": NameTaken,
}


def refusal(command: str, code: str, detail: dict[str, Any]) -> ScriptError:
    """The exception for a script's refusal."""
    return _CLASSES.get(code, ScriptError)(command, code, detail)
