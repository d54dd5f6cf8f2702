"""Logs: the table of events, and how they are written.

Events are the interface to operators and tests. Start and end of a job are `info`, what is periodic
is `debug`. Every line within a run says its jid, klass and queue, every line of a worker its name;
a job's data are never logged.

    event                        level    fields beside those
    worker.started               info     queues concurrency handlers
    worker.eviction_allowed      warning  policy
    worker.eviction_unknown      warning  error
    worker.recovered             info     jobs
    worker.name_lost             error    why
    worker.subscribed            info     worker queue
    worker.unsubscribed          info     worker queue
    worker.paused                info     worker running
    worker.resumed               info     worker
    worker.registration_failed   debug    error
    worker.reply_failed          debug    order error
    worker.shutdown_started      info     worker running
    worker.stopped               info
    worker.crashed               error    error
    worker.loop_blocked          warning  seconds where, and jid klass queue or running
    worker.loop_resumed          info
    worker.stuck                 error    jids where, and jid klass queue or running
    worker.heartbeat_delayed     warning  seconds where, and jid klass queue or running
    worker.recycling             info     why
    worker.orphaned              warning
    worker.reload_ignored        warning  why
    worker.sandboxed             info     directory
    job.stack_dumped             info     jid klass queue seconds stack
    worker.stacks_dumped         info     running
    worker.redis_lost            error    error
    worker.redis_reconnected     info     seconds
    poller.popped                debug    jobs asked
    job.stale_pop_dropped        warning  jid klass queue why
    job.started                  info
    job.progress_lost            debug    jid error
    job.completed                info     seconds
    job.advanced                 info     seconds to state
    job.retried                  info     seconds delay remaining
    job.failed                   warning  seconds group message exhausted
    job.released                 info     seconds delay why
    job.declined                 warning  why delay timeout
    job.settled                  info     seconds error
    job.abandoned                warning  jid klass queue seconds stack
    job.lock_lost                warning  seconds why
    job.refused                  error    seconds why
    job.outcome_dropped          error    outcome why
    hook.failed                  error    hook end error
    queue.unserved               warning  queue why
    queue.unused                 warning  queue why
    queue.lag_exceeded           warning  queue seconds
    recurring.declared           info     recurring done
    recurring.dropped            info     recurring
    recurring.lost               warning  why
    recurring.triggered          info     jid recurring late
    recurring.blocked            warning  error
    recurring.refused            error    recurring why
    intake.started               info     source url program data
    intake.taken                 info     source jobs
    intake.refused               error    key jid why
    intake.unreadable            error    source what error
    intake.blocked               warning  source error
    outbox.started               info     database table url program data
    outbox.put                   info     queue jobs
    outbox.refused               error    row queue why
    outbox.blocked               error    error
    archive.cut                  warning  after entries
    archive.unread               warning  why
    archive.rewound              warning  after
    pipeline.rows_put            info     put existing rejected
    pipeline.put_failed          warning  put
    outcomes.stored              debug    jobs
    listener.failed              debug    error
    redis.used                   info     url program data
    web.started                  info     url users
    web.action_performed         info     user action details outcome
    web.request_refused          warning  why client path
    web.token_created            warning  link why
    web.logged_in                info     user client
    web.login_refused            warning  user client why
    web.logged_out               info     user client
    web.audit_failed             error    user action why
    web.page_failed              error    path error exc_info
    human_tasks.token_created    warning  startup_token why
    human_tasks.sign_in_refused  warning  client why
    health.listening             info     port
    supervisor.started           info     processes
    supervisor.shutdown_started  info     processes
    supervisor.stopped           info     code
    supervisor.sources_changed   info     files
    supervisor.restart_started   info
    supervisor.restart_finished  info
    supervisor.restart_failed    error    process code
    process.started              info     process pid
    process.became_ready         info     process seconds
    process.ended                info     process code seconds
    process.replaced             info     process seconds
    process.start_failed         error    error pause
    process.killed               error    process seconds
    process.died                 error    process code seconds pause
    process.start_refused        error    process code
    process.exit_forced          warning  code threads
    log.lines_dropped            warning  lines error
"""

from __future__ import annotations

import logging
import sys
from typing import Any, TypedDict

import structlog
from structlog.contextvars import bind_contextvars as bind
from structlog.contextvars import bound_contextvars as bound

from aioqless.runtime import output

__all__ = ["bind", "bound", "log", "write_to"]


class LogOptions(TypedDict):
    """Arguments of `write_to`, for child processes that are to write likewise."""

    level: str
    as_json: bool | None
    process: int | None


written: LogOptions | None = None

LEVELS = ("debug", "info", "warning", "error")


class Log:
    """Passes events to structlog, as the application or `write_to` configured it.

    Never raises: a line that can't be rendered or written is dropped, and the number of dropped
    lines is logged when one can be written again.
    """

    def __init__(self) -> None:
        self._lines: Any = structlog.get_logger("aioqless")

    def debug(self, event: str, **fields: object) -> None:
        """Log something periodic."""
        self.write("debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log something that happens to a job or a worker."""
        self.write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log something that an operator may want to change."""
        self.write("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Log something that is wrong."""
        self.write("error", event, fields)

    def write(self, level: str, event: str, fields: dict[str, object]) -> None:
        """Log an event at a level: debug, info, warning or error."""
        before = output.dropped.lines
        try:
            getattr(self._lines.bind(), level)(event, **fields)  # structlog caches `bind`
        except Exception as error:  # of processors, of a value's methods, of a closed stream
            output.dropped.add(1, str(getattr(error, "strerror", None) or type(error).__name__))
        if before and before == output.dropped.lines and event != "log.lines_dropped":
            self._log_dropped()

    def _log_dropped(self) -> None:
        lines, error = output.dropped.take()
        log.warning("log.lines_dropped", lines=lines, error=error)
        if output.dropped.lines:  # this line can't be written either, and doesn't count
            output.dropped.lines += lines - 1


log = Log()


def write_to(
    stream: object = None,
    *,
    level: str = "info",
    as_json: bool | None = None,
    process: int | None = None,
) -> None:
    """Write events to a stream, for commands; an application configures structlog itself.

    Args:
        stream: Default: standard error; then writing to standard output and error never raises
            from now on.
        level: Lowest level that is written.
        as_json: Write JSON; default: unless the stream is a terminal.
        process: Number of this process among several, added to each line.

    Raises:
        ValueError: There is no such level.
    """
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} must be one of {', '.join(LEVELS)}")
    global written  # noqa: PLW0603  # one configuration per process, as structlog has it
    written = {"level": level, "as_json": as_json, "process": process}
    if stream is None:
        output.protect()
        stream = sys.stderr
    structlog.configure(
        processors=_processors(stream, as_json=as_json, process=process),
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=stream),  # type: ignore[arg-type]  # any object that has write and flush
        cache_logger_on_first_use=True,
    )


def _processors(
    stream: object, *, as_json: bool | None, process: int | None
) -> list[structlog.typing.Processor]:
    terminal = bool(getattr(stream, "isatty", lambda: False)())
    processors: list[structlog.typing.Processor] = [structlog.contextvars.merge_contextvars]
    if process is not None:
        processors.append(lambda _, __, event: {"process": process, **event})
    processors.append(structlog.processors.add_log_level)
    if terminal if as_json is None else not as_json:
        return [
            *processors,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            # The default of `colors` depends on the system.
            structlog.dev.ConsoleRenderer(pad_event_to=20)
            if terminal
            else structlog.dev.ConsoleRenderer(pad_event_to=20, colors=False),
        ]
    return [
        *processors,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(),
    ]
