"""A command's header: its signature, which is executed, so it cannot rot.

    -- @key     queue queue             KEYS[1]: the queue's name, bare or as <namespace>:q:<queue>;
                                        new_queue: one that may be new
    -- @keys    queues                  every KEYS entry, each such a name
    -- @arg     jid string              a positional argument; `?` behind the type: optional
    -- @literal interval                an argument that must be this word
    -- @when    add add tags to a job   what follows is for calls whose next argument is this word,
    -- @when    list default            and what they do; `default`: also for calls without a word
    -- @rest    jids string             a tail of any length, ended by an empty argument, which may
                                        be in a tail of any_jid if it isn't the last
    -- @batch   jid:jid data:data?      a count, then as many tuples, or `count/members`, if all of
                                        them leave out the last members; the body calls
                                        `each(function(jid, data) ... end)`
    -- @option  priority priority       a trailing name/value pair, always optional
    -- @options enqueue                 the options that this library declares; with @batch they are
                                        the last members of each tuple; the body finds them in the
                                        table `options`
    -- @present job.many(answer)        the expression of the reply, if it isn't the stored answer
    -- @flags   no-writes               script flags of Redis; all commands without `no-writes` take
                                        the option `request`
    -- @role    producer                the ACL roles that may call it
    -- @reads   *                       keys that it reads without naming them: functions of
                                        lib/base/keys.lua, or patterns
    -- @writes  job history             keys that it changes without naming them
    -- @durable                         its caller relies on it: it is retried for as long as a
                                        fail-over may take, and sent durably
    -- @returns json                    how to read the reply: json, number, count, text, strings,
                                        answers (strings or errors), list or nothing (call.py)
    -- @raises  NOJOB LOCKLOST          the error codes, except BADARG

Types are the functions of lib/base/args.lua, and `job_json` (lib/base/job_json.lua).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile

from aioqless.lua import list_commands, read_library, read_script, usual_functions


@dataclass(frozen=True)
class Arg:
    """One argument: its name, its type (a function of args.lua), and whether it is optional."""

    name: str
    type: str
    optional: bool = False


@dataclass
class Form:
    """The arguments of a command, or of one word of a command that has several.

    Attributes:
        summary: What calls with its word do.
        shared: The options that a library declares for several commands; they are among `options`,
            or the last of `batch`.
    """

    args: list[Arg] = field(default_factory=list)
    rest: Arg | None = None
    batch: list[Arg] = field(default_factory=list)
    options: list[Arg] = field(default_factory=list)
    shared: list[Arg] = field(default_factory=list)
    returns: str | None = None
    summary: str = ""

    def names(self) -> Iterator[str]:
        """Yield the locals in which the body finds its arguments, except those of a batch."""
        yield from (arg.name for arg in self.args if arg.type != "literal")
        if self.rest:
            yield self.rest.name
        yield from (option.name for option in self.options if option not in self.shared)
        if self.shared:
            yield "options"


@dataclass
class Command:
    """What the header of a command says, and its body.

    Attributes:
        lead: The arguments before the word, or all of them where there is none.
        forms: The arguments after each word.
        key_uses: Keys that it uses without naming them, and whether it writes them.
        usual: The library functions that its usual call runs, as recorded (lua/usual.json).
    """

    name: str
    summary: str = ""
    key: str | None = None
    key_type: str = "queue"
    keys: str | None = None
    lead: Form = field(default_factory=Form)
    forms: dict[str, Form] = field(default_factory=dict)
    default: str | None = None
    present: str = "answer"
    flags: tuple[str, ...] = ()
    returns: str = "nothing"
    raises: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    key_uses: dict[str, bool] = field(default_factory=dict)
    durable: bool = False
    usual: list[str] = field(default_factory=list)
    body: list[tuple[int, str]] = field(default_factory=list)

    def names(self) -> Iterator[str]:
        """Yield the locals in which the body finds its arguments, those of a batch included."""
        yield from (name for name in (self.key, self.keys) if name)
        for form in (self.lead, *self.forms.values()):
            yield from form.names()
            yield from (arg.name for arg in form.batch)

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return "no-writes" not in self.flags


class HeaderError(ValueError):
    """A header or library that can't be understood: a mistake in the package, found by tests."""


@cache
def command_files() -> dict[str, str]:
    """Return the file of each command, by its name, those of the extensions included."""
    return {file.rpartition("/")[2].removesuffix(".lua"): file for file in list_commands()}


@cache
def command_names() -> tuple[str, ...]:
    """Return the names of all commands."""
    return tuple(sorted(command_files()))


@cache
def read_command(name: str) -> Command:
    """Parse the file of a command.

    Raises:
        HeaderError: Its header says something unknown.
    """
    lines = read_script(command_files()[name]).splitlines()
    command = Command(name, usual=list(usual_functions().get(name, ())))
    form = command.lead
    for number, line in enumerate(lines, 1):
        if not line.startswith("--"):
            command.body = list(enumerate(lines[number - 1 :], number))
            break
        if number == 1:
            command.summary = line.removeprefix(f"-- {name}: ")
        if directive := re.match(r"-- @(\w+)\s*(.*)", line):
            try:
                form = _directive(command, form, directive[1], directive[2].split("--")[0].split())
            except IndexError:
                raise HeaderError(f"{name}.lua:{number}: @{directive[1]} lacks a word") from None
    for each in command.forms.values() or [command.lead]:
        (each.batch or each.options).extend(each.shared)
        if command.writes:
            each.options.append(Arg("request", "request", True))
    return command


@cache
def _shared_options(library: str) -> list[Arg]:
    text = read_library(library)
    found = re.findall(r"^-- @option +(\w+) +(\w+)", text, re.MULTILINE)
    return [Arg(name, type_, optional=True) for name, type_ in found]


def _directive(  # noqa: C901, PLR0912  # one short case for each directive reads best
    command: Command, form: Form, word: str, rest: list[str]
) -> Form:
    """Take in a directive, and return the form that the next one belongs to."""
    match word:
        case "key":
            command.key, command.key_type = rest[0], rest[1] if len(rest) > 1 else "queue"
        case "keys":
            command.keys = rest[0]
        case "arg":
            form.args.append(_arg(rest[0], rest[1]))
        case "literal":
            form.args.append(Arg(rest[0], "literal"))
        case "rest":
            form.rest = _arg(rest[0], rest[1])
        case "batch":
            form.batch += [
                _arg(*item.split(":")) for item in takewhile(lambda item: ":" in item, rest)
            ]
        case "option":
            form.options.append(Arg(rest[0], rest[1], True))
        case "options":
            form.shared = _shared_options(rest[0])
        case "when":
            if default := rest[1:2] == ["default"]:
                command.default = rest[0]
            form = command.forms[rest[0]] = Form(summary=" ".join(rest[1 + default :]))
        case "present":
            command.present = " ".join(rest)
        case "flags":
            command.flags = tuple(rest)
        case "returns":
            if form is command.lead:
                command.returns = rest[0]
            form.returns = rest[0]
        case "raises":
            command.raises = tuple(rest)
        case "role":
            command.roles = tuple(rest)
        case "reads" | "writes":
            command.key_uses |= dict.fromkeys(rest, word == "writes")
        case "durable":
            command.durable = True
        case _:
            raise HeaderError(f"{command.name}.lua: unknown directive @{word}")
    return form


def _arg(name: str, type_: str) -> Arg:
    return Arg(name, type_.rstrip("?"), type_.endswith("?"))
