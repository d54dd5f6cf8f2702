"""Logs: events with fields, as records of the standard library's `logging`.

The first word of an event names its logger: `aioqless.job` logs `job.completed`. Where records go
is up to the program; `write_to` decides it for commands. Events are an interface to operators and
tests: docs/monitoring.md lists them. Start and end of a job are `info`, what is periodic is
`debug`. Every record of a job has its jid, klass and queue, every record of a worker its name; a
job's data is never logged.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import NamedTuple, TextIO, TypeAlias, TypedDict

import structlog
from structlog.contextvars import bind_contextvars as bind
from structlog.contextvars import bound_contextvars as bound
from structlog.contextvars import get_contextvars
from structlog.dev import ConsoleRenderer
from structlog.processors import JSONRenderer, TimeStamper, format_exc_info
from structlog.typing import EventDict, ExcInfo

from aioqless.runtime import standard_streams

__all__ = ["bind", "bound", "log", "write_to"]


class LogOptions(TypedDict):
    """Arguments of `write_to`, for child processes that are to write likewise."""

    level: str
    as_json: bool | None
    process: int | None


class Fields(dict[str, object]):
    """An event and its fields; the text has `name=value` of each field, tracebacks at its end."""

    def __str__(self) -> str:
        texts = {name: _text(self[name]) for name in self if name != "event"}
        names = sorted(texts, key=lambda name: "\n" in texts[name])
        return " ".join(f"{name}={texts[name]}" for name in names)


def _text(value: object) -> str:
    if isinstance(value, str) and "\n" in value:  # indented, so that no line looks like a record
        return "".join(
            f"\n    {line if line.isprintable() else repr(line)}" for line in value.split("\n")
        )
    if isinstance(value, str) and value.isprintable() and value and " " not in value:
        return value
    return repr(value)


class RecordParts(NamedTuple):
    """What a record is made of."""

    message: str
    fields: Fields
    raised: ExcInfo | bool | None
    extra: dict[str, object]


LoggerArguments: TypeAlias = tuple[tuple[str, Fields], dict[str, object]]

written: LogOptions | None = None

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
# The fields that come first in each line; the others follow as they were logged.
ORDER = ("timestamp", "level", "event", "jid", "klass", "queue", "worker")
# Records of these are about the job that runs. Others may come from its context by chance: a worker
# may notice an outage of Redis in any call.
OF_JOBS = ("job.", "hook.")
JOB_FIELDS = ("jid", "klass", "queue")

# Attributes that every record has: a field of that name gets an underscore, such as `message_`.
RESERVED = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})


class LoggersByEvent(dict[str, logging.Logger]):
    """Finds the logger of an event."""

    def __missing__(self, event: str) -> logging.Logger:
        logger = self[event] = logging.getLogger(f"aioqless.{event.partition('.')[0]}")
        return logger


class Log:
    """Logs events; costs next to nothing where the program's level excludes them.

    Never raises: a record that can't be handled is dropped, and the number of dropped records is
    logged when one can be handled again.
    """

    def __init__(self) -> None:
        self._loggers = LoggersByEvent()

    def debug(self, event: str, **fields: object) -> None:
        """Log something periodic."""
        if self._loggers[event].isEnabledFor(logging.DEBUG):
            self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log something that happens to a job or a worker."""
        if self._loggers[event].isEnabledFor(logging.INFO):
            self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log something that an operator may want to change."""
        if self._loggers[event].isEnabledFor(logging.WARNING):
            self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Log something that is wrong."""
        if self._loggers[event].isEnabledFor(logging.ERROR):
            self._write(logging.ERROR, event, fields)

    def is_enabled(self, level: str, event: str) -> bool:
        """Return whether an event is logged at a level."""
        return self._loggers[event].isEnabledFor(LEVELS[level])

    def write(self, level: str, event: str, fields: Mapping[str, object]) -> None:
        """Log an event at a level: debug, info, warning or error."""
        if self._loggers[event].isEnabledFor(LEVELS[level]):
            self._write(LEVELS[level], event, fields)

    def _write(self, level: int, event: str, fields: Mapping[str, object]) -> None:
        before = standard_streams.dropped.lines
        caller = sys._getframe(2)  # noqa: SLF001  # `Logger.findCaller` takes as long as the rest
        try:
            bound = get_contextvars()
            if not event.startswith(OF_JOBS):
                for name in JOB_FIELDS:
                    bound.pop(name, None)
            parts = split_event(_merge({**fields, "event": event}, bound))
            logger = self._loggers[event]
            record = logger.makeRecord(
                logger.name,
                level,
                caller.f_code.co_filename,
                caller.f_lineno,
                parts.message,
                (parts.fields,),
                sys.exc_info() if parts.raised else None,
                caller.f_code.co_name,
            )
            vars(record).update(parts.extra)
            logger.handle(record)
        except Exception as error:  # of filters, handlers, and a value's methods
            standard_streams.dropped.add(1, _reason(error))
        if before and before == standard_streams.dropped.lines and event != "log.lines_dropped":
            self._log_dropped()

    def _log_dropped(self) -> None:
        lines, error = standard_streams.dropped.take()
        log.warning("log.lines_dropped", lines=lines, error=error)
        if standard_streams.dropped.lines:  # this line can't be written either, and doesn't count
            standard_streams.dropped.lines += lines - 1


log = Log()


def split_event(event_dict: EventDict) -> RecordParts:
    """Make the parts of a record of an event and its fields.

    The message is text for people, of one format for each event; each field is an attribute.
    """
    raised = event_dict.pop("exc_info", None)
    fields = Fields(event_dict)
    message = str(fields["event"]).replace("%", "%%")
    if len(fields) > 1:
        message += " %s"
    extra = {f"{name}_" if name in RESERVED else name: fields[name] for name in fields}
    return RecordParts(message, fields, raised, extra)


def _merge(fields: EventDict, bound: Mapping[str, object]) -> EventDict:
    """Add bound fields, in the same order in all processes; that of context variables varies."""
    return _in_order({**dict(sorted(bound.items())), **fields})


def _in_order(line: EventDict) -> EventDict:
    return {name: line[name] for name in ORDER if name in line} | dict(line)


def _to_logger(_logger: object, _method: str, event_dict: EventDict) -> LoggerArguments:
    """Return what structlog passes to a method of a logger, with the bound fields."""
    parts = split_event(_merge(event_dict, get_contextvars()))
    return (parts.message, parts.fields), {"exc_info": parts.raised, "extra": parts.extra}


def _reason(error: BaseException | None) -> str:
    return str(getattr(error, "strerror", None) or type(error).__name__)


def write_to(
    stream: TextIO | None = None,
    *,
    level: str = "info",
    as_json: bool | None = None,
    process: int | None = None,
) -> None:
    """Write logs to a stream, for commands; other programs configure `logging` themselves.

    All logs are written in one format: events, those of structlog, and other records of `logging`.

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
    global written  # noqa: PLW0603  # one configuration per process, as `logging` has it
    written = {"level": level, "as_json": as_json, "process": process}
    if stream is None:
        standard_streams.protect()
        stream = sys.stderr
    root = logging.getLogger()
    for former in [each for each in root.handlers if isinstance(each, LineHandler)]:
        root.removeHandler(former)
    handler = LineHandler(stream)
    terminal = stream.isatty()
    handler.setFormatter(
        LineFormatter(
            as_json=not terminal if as_json is None else as_json, terminal=terminal, process=process
        )
    )
    root.addHandler(handler)
    root.setLevel(LEVELS[level])
    structlog.configure(
        processors=[_to_logger],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes records to a stream; counts those that can't be written."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802  # of `logging`
        """Count a record whose values can't be rendered, or whose stream is closed."""
        standard_streams.dropped.add(1, _reason(sys.exc_info()[1]))


class LineFormatter(logging.Formatter):
    """Formats a record as one line, in JSON or for a terminal or file, by structlog's renderers."""

    def __init__(self, *, as_json: bool, terminal: bool, process: int | None) -> None:
        super().__init__()
        self._as_json = as_json
        self._process = {} if process is None else {"process": process}
        self._add_time = (
            TimeStamper(fmt="iso") if as_json else TimeStamper(fmt="%H:%M:%S", utc=False)
        )
        self._render = JSONRenderer() if as_json else _console_renderer(terminal)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line: EventDict = dict(self._process)
        if isinstance(record.args, Fields):
            line.update(record.args)
        else:
            line.update(event=record.getMessage(), logger=record.name)
            line.update(
                (name, value)
                for name, value in vars(record).items()
                if name not in RESERVED and name != "color_message"  # uvicorn's, with escapes
            )
            line = _merge(line, get_contextvars())
        line["level"] = level = record.levelname.lower()
        if record.exc_info:
            line["exc_info"] = record.exc_info
        self._add_time(None, level, line)
        if self._as_json:
            format_exc_info(None, level, line)
        return str(self._render(None, level, _in_order(line)))


def _console_renderer(terminal: bool) -> ConsoleRenderer:
    # The first parameter, the width of the event, has had several names.
    if terminal:  # the default of `colors` depends on the system
        return ConsoleRenderer(20, sort_keys=False)
    return ConsoleRenderer(20, sort_keys=False, colors=False)
