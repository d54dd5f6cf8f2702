"""The exceptions of aioqless.

    AioqlessError
    ├── ScriptError            Redis refused a call and changed nothing: .command .code .detail
    │   ├── NoSuchJob          NOJOB
    │   ├── LockLost           LOCKLOST   another run holds the job
    │   ├── WrongState         BADSTATE
    │   ├── InvalidArgument    BADARG
    │   ├── QueueFull          FULL, OOM  put: the queue or the memory of Redis is full
    │   ├── JobExists          EXISTS     put: there is a job with this jid or unique key
    │   ├── HasDependents      HELD       cancel: a job that depends on it isn't canceled
    │   ├── StaleRequest       REPEATED   a repeated call arrived after a later one of its caller
    │   ├── NoResult           NORESULT   a job isn't complete, or no result is kept of it
    │   ├── AlreadySignaled    SIGNALED   signal: the job has a signal of this name
    │   ├── SetClosed          SETCLOSED  put: the job set takes no more members from outside
    │   ├── NoSuchSet          NOSET      there is no job set of this name
    │   ├── NoSuchWorker       NOWORKER   no running worker has this name
    │   └── NameTaken          NAMETAKEN  another worker has this name
    ├── JobFailed              a job whose result was read or waited for has failed
    ├── CommandRefused         a worker refused a remote command, or did not answer
    ├── NotDurable             a write was done, but is not durable yet
    ├── PutManyError           put_many: not all jobs are known to be put; an ExceptionGroup
    ├── InvalidData            a job's data can't be stored, or isn't what its handler takes
    │   └── DecryptionError    a job's data can't be decrypted or verified
    ├── UnknownKlass           no handler is registered for a klass
    ├── DuplicateKlass         two handlers are registered for a klass
    ├── MissingExtra           a package of an extra is not installed
    ├── ServerUnavailable      a private server can't be found, started, reached or stopped
    └── ProcessDied            the process that ran a job ended before the job did

Errors of the connection are those of redis-py: redis.exceptions.ConnectionError and TimeoutError.
"""

from __future__ import annotations

import copyreg
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

_NAMED = 5  # jobs in a message


class AioqlessError(Exception):
    """The base class of all errors of aioqless."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it without a call of its constructor, whose arguments are not in `args`."""
        reduced: Any = super().__reduce__()  # its class, `args`, and its attributes if it has any
        kind, args, *state = reduced
        attributes = {**(state[0] if state else {}), "args": args}
        return copyreg.__newobj__, (kind, *args), attributes  # type: ignore[attr-defined]


class ScriptError(AioqlessError):
    """Redis refused a call. Nothing was changed.

    Attributes:
        command: Name of the command.
        code: Error code.
        detail: What the script reported, by name.
    """

    def __init__(self, command: str, code: str, detail: dict[str, Any]) -> None:
        self.command = command
        self.code = code
        self.detail = detail
        super().__init__(f"{command}: {self.describe()}")

    def describe(self) -> str:
        """Say what happened, in one line."""
        about = ", ".join(
            f"{name} {value!r}" for name, value in self.detail.items() if name != "why"
        )
        why = str(self.detail.get("why", self.code))
        return f"{why} ({about})" if about else why

    @property
    def jid(self) -> str | None:
        """The job that it is about, if any."""
        return self.detail.get("jid")


class NoSuchJob(ScriptError):
    """There is no job (or recurring job) with this jid."""


class LockLost(ScriptError):
    """Another run holds the job: its lock expired and was taken, or an operator moved it."""

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
    """An argument is missing or malformed; `detail` has its name, its value and why."""

    def describe(self) -> str:
        """Name the argument, its value, and what is wrong with it."""
        value = self.detail.get("value")
        shown = "" if value is None else f"{value!r} "
        return f"{self.detail.get('argument')} {shown}{self.detail.get('why')}"


class JobExists(ScriptError):
    """A job with this jid or unique key exists, `jid`; nothing was put (`if_exists="raise"`)."""


class HasDependents(ScriptError):
    """The job can't be canceled while `detail["dependent"]` waits for it.

    Cancel both in one call.
    """


class AlreadySignaled(ScriptError):
    """The job has a signal of this name; the first one counts."""


class SetClosed(ScriptError):
    """The job set is closed, or canceled: only its running members may add others."""


class NoSuchSet(ScriptError):
    """There is no job set of this name: nothing was put into it, or it is kept no longer."""


class StaleRequest(ScriptError):
    """A repeated call arrived after the next one of its caller. It was not carried out again."""


class NoSuchWorker(ScriptError):
    """No worker with this name is connected: none runs, or it starts, or lost its connection."""


class NoResult(ScriptError):
    """The job isn't complete, or its handler keeps no results, or this one has expired.

    Handlers keep results with `@job(result_ttl=seconds)`.
    """

    @property
    def state(self) -> str | None:
        """The state that the job is in; None if there is no such job.

        If it is `"complete"`, no result of the job is kept; otherwise the job has not ended.
        """
        return self.detail.get("state")

    def describe(self) -> str:
        """Say what happened, and how results are kept."""
        if self.detail.get("why") == "the job is not complete":
            return super().describe()
        return f"{super().describe()}: handlers keep their results with @job(result_ttl=seconds)"


class JobFailed(AioqlessError):
    """A job whose result was read or waited for has failed.

    Attributes:
        jid: The job.
        group: The group that it failed in.
        message: The type and the message of its error in one line; `str()` has this.
        traceback: The whole text of its failure: the traceback, if there is one.
    """

    def __init__(self, jid: str, group: str, traceback: str) -> None:
        self.jid = jid
        self.group = group
        self.message = error_line(traceback)
        self.traceback = traceback
        super().__init__(f"job {jid} failed in {group}: {self.message}")


_TRACEBACK = "Traceback (most recent call last):\n"
_GROUP_TRACEBACK = "Exception Group Traceback (most recent call last):\n"
# Frames and source lines are indented, the error is not; groups have a bar in front of both.
_ERROR_LINE = re.compile(r"^(?:  \| )?([A-Za-z_][\w.]*(?:: .*)?)$", re.MULTILINE)


def error_line(text: str) -> str:
    """Return the line of a traceback that names the error; other texts as one line."""
    if _TRACEBACK not in text:
        return " ".join(line.strip() for line in text.splitlines()).strip()
    if _GROUP_TRACEBACK in text:
        text = text.partition(_GROUP_TRACEBACK)[2]
    else:
        text = text.rpartition(_TRACEBACK)[2]
    found = _ERROR_LINE.search(text)
    return found[1] if found else text.strip().rpartition("\n")[2].strip()


class NameTaken(ScriptError):
    """Another worker has this stable name and may be running.

    `detail` says which process on which host, and for how long it was silent.
    """

    def describe(self) -> str:
        """Name the other worker."""
        where = f"process {self.detail.get('pid')} on {self.detail.get('host')}"
        return (
            f"the name {self.detail.get('worker')!r} belongs to {where}, last seen "
            f"{self.detail.get('silent')} s ago: stop that worker, or give this one another name"
        )


class CommandRefused(AioqlessError):
    """A worker refused a remote command, or did not answer in time and may still carry it out."""


class QueueFull(ScriptError):
    """The queue is at its `<queue>-max-length`, or Redis at its `maxmemory`.

    For a full queue `detail` has queue, length and limit. Jobs can still be popped and completed. A
    put may wait for room: `put(..., wait=seconds)`.
    """


class NotDurable(AioqlessError):
    """A write was done, but replicas or disks that `durability` requires don't have it yet.

    A fail-over now may lose it.

    Attributes:
        result: What the call would have returned.
    """

    def __init__(self, missing: str, result: Any = None) -> None:
        super().__init__(f"it is done, but {missing}: a fail-over now may lose it")
        self.result = result


class PutManyError(AioqlessError, ExceptionGroup[Exception]):
    """Not all jobs of `put_many` are known to be put; the other jobs were put.

    Its exceptions are those of the jobs below, in order. `jids` has the jid of every job, with
    which the list can be put again: `NewJob(..., jid=..., if_exists="keep")`.

    Attributes:
        jids: Jid of each job, in order.
        refused: Jobs that Redis refused, and why, by index.
        unknown: Jobs that may have been put, as the connection broke, by index.
        not_durable: Jobs that were put, but are not durable yet, by index.
    """

    jids: list[str]
    refused: Mapping[int, Exception]
    unknown: Mapping[int, Exception]
    not_durable: Mapping[int, Exception]

    def __new__(
        cls,
        jids: list[str],
        refused: Mapping[int, Exception],
        unknown: Mapping[int, Exception],
        not_durable: Mapping[int, Exception],
    ) -> Self:
        """Make one; arguments are the attributes."""
        failed = {**refused, **unknown, **not_durable}
        kinds = (
            (refused, "refused"),
            (unknown, "perhaps put, as the connection broke"),
            (not_durable, "put, but not durable yet"),
        )
        parts = [f"{_name_jobs(jids, list(found))} {what}" for found, what in kinds if found]
        self = super().__new__(
            cls,
            f"of {len(jids)} jobs, {'; '.join(parts)}; the others were put",
            [failed[index] for index in sorted(failed)],
        )
        self.jids, self.refused = jids, refused
        self.unknown, self.not_durable = unknown, not_durable
        return self

    def derive(self, excs: Sequence[Exception], /) -> ExceptionGroup[Exception]:  # type: ignore[override]
        """Return an ordinary group, for `except*` and `split`."""
        return ExceptionGroup(self.message, excs)


def _name_jobs(jids: Sequence[str], indexes: Sequence[int]) -> str:
    """Return how many jobs these are, with index and jid of the first ones."""
    named = [f"{index}: {jids[index]}" for index in indexes[:_NAMED]]
    if len(indexes) > _NAMED:
        named.append("...")
    return f"{len(indexes)} ({', '.join(named)})"


class InvalidData(AioqlessError):
    """Data that is not JSON, is `false`, is too large, or is not what the job's handler takes."""


class DecryptionError(InvalidData):
    """Data can't be decrypted or verified.

    It was encoded with a key that isn't here or for another klass, was changed, or isn't encoded at
    all though that is required.
    """


class UnknownKlass(AioqlessError):
    """No handler of this worker is registered for the job's klass."""


class DuplicateKlass(AioqlessError):
    """Two handlers are registered for one klass."""


class MissingExtra(AioqlessError, ImportError):
    """A package of an extra of aioqless isn't installed, or can't be imported.

    Attributes:
        extra: Name of the extra.
        name: Name of the module.
    """

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
    """The process that ran a job ended before the job did.

    Attributes:
        code: Its exit code, or the negative number of a signal.
    """

    def __init__(self, code: int) -> None:
        self.code = code
        names = {-number: number.name for number in signal.Signals}
        cause = f"exit code {code}" if code >= 0 else f"signal {names.get(code, -code)}"
        super().__init__(f"the process that performed it ended with {cause}")


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Import packages of an extra within this block.

    Raises:
        MissingExtra: One of them can't be imported.
    """
    try:
        yield
    except MissingExtra:
        raise
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "aioqless":
            raise  # a defect of aioqless; no package is missing
        raise MissingExtra(extra, error) from None


_CLASSES: dict[str, type[ScriptError]] = {
    "NOJOB": NoSuchJob,
    "LOCKLOST": LockLost,
    "BADSTATE": WrongState,
    "BADARG": InvalidArgument,
    "EXISTS": JobExists,
    "FULL": QueueFull,
    "OOM": QueueFull,
    "HELD": HasDependents,
    "REPEATED": StaleRequest,
    "SIGNALED": AlreadySignaled,
    "SETCLOSED": SetClosed,
    "NOSET": NoSuchSet,
    "NOWORKER": NoSuchWorker,
    "NORESULT": NoResult,
    "NAMETAKEN": NameTaken,
}


def script_error(command: str, code: str, detail: dict[str, Any]) -> ScriptError:
    """Return the exception for a refusal by a script."""
    return _CLASSES.get(code, ScriptError)(command, code, detail)
