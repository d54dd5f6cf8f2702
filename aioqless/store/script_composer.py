"""Build a Lua script from a command's header and body and the library functions that they reach.

A library is a file of top-level functions `function lib.name(...)`. Only those that a command
mentions, directly or through others, are put into its script. Redis pays for each definition at
each call. So only the functions that a command's usual call runs, as recorded, are defined at once,
as locals; each of the others is defined when a call first needs it. What lives for one call is in
the table `call`, which is empty when a call starts.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TypeAlias

from aioqless.lua import constant
from aioqless.redis.cluster import uses_shard_channels
from aioqless.store.command_header import (
    Arg,
    Command,
    Form,
    HeaderError,
    command_files,
    read_command,
)
from aioqless.store.inlining import escape, insert_namespace
from aioqless.store.library_linker import (
    MENTION,
    Block,
    find_blocks,
    find_sources,
    known_libraries,
    reaches,
    write_out,
)

# The first item of a reply that says that notes are stored; no name has such a character. The other
# items are the time of the call, if it was given, and the reply itself.
NOTED = "\x01agenda"

Line: TypeAlias = tuple[str, tuple[str, int] | None]


@dataclass(frozen=True)
class Script:
    """A composed script: its text, and the file and line that each of its lines came from."""

    command: Command
    text: str
    origins: tuple[tuple[str, int] | None, ...]

    @cached_property
    def sha(self) -> str:
        """Its SHA-1, by which Redis knows it."""
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def origin(self, line: int) -> str:
        """Return where a line of the script was written, as `lib/job.lua:12`."""
        found = self.origins[line - 1] if 0 < line <= len(self.origins) else None
        return f"{found[0]}:{found[1]}" if found else f"{self.command.name} (composed):{line}"


@cache
def compose(name: str, namespace: str, *, answer_only: bool = False) -> Script:
    """Compose the script of a command for a namespace.

    Args:
        name: The command.
        namespace: The namespace.
        answer_only: Compose a script that takes and returns the same, but only reads the stored
            answer to the request.

    Raises:
        HeaderError: A header or a library can't be understood.
    """
    command = read_command(name)
    flags = ("no-writes",) if answer_only else command.flags
    shebang = "#!lua" + (f" flags={','.join(flags)}" if flags else "")
    publish = "'SPUBLISH'" if uses_shard_channels(namespace) else "'PUBLISH'"
    composed = (
        (insert_namespace(namespace, text).replace("'PUBLISH'", publish), at)
        for text, at in _lines(name, answer_only)
    )
    lines = [(shebang, None), (f"local ns = {_quoted(namespace)}", None), *composed]
    return Script(
        command, "\n".join(text for text, _ in lines), tuple(origin for _, origin in lines)
    )


@cache
def _lines(name: str, answer_only: bool) -> list[Line]:
    """Compose all of a script that is the same in every namespace."""
    command = read_command(name)
    for hidden in known_libraries().keys() & set(command.names()):
        raise HeaderError(
            f"{name}.lua: its argument {hidden} hides {known_libraries()[hidden]}; "
            "give it another name"
        )
    if command.writes and (taken := _TAIL_NAMES & set(command.names())):
        raise HeaderError(f"{name}.lua: give its argument {', '.join(taken)} another name")
    arguments = [write_out(text) for text in _arguments(command)]
    written = _answer_only_tail(command) if answer_only else _tail(command)
    tail = [write_out(text) for text in written]
    body = [] if answer_only else [(number, write_out(text)) for number, text in command.body]
    usual = () if answer_only else command.usual
    whole = "\n".join([*arguments, *tail, *(text for _, text in body)])
    defined, deferred = find_blocks(whole, usual)
    lines: list[Line] = [("local call = {}", None)]
    names = [*usual, "lib"] if deferred else usual
    if names:
        lines.append((f"local {', '.join(names)}", None))
    lines += _definitions(defined)
    lines += _definitions_on_demand(deferred)
    lines += [(text, None) for text in arguments]
    of_body: list[Line] = [(text, (command_files()[name], number)) for number, text in body]
    for text in tail:
        if text != _BODY:
            lines.append((text, None))
        else:
            lines += _answering(of_body) if command.writes else of_body
    return [(name_functions(text, usual), origin) for text, origin in lines]


@cache
def source(name: str) -> str:
    """Return the Lua of a command as it is written: its body, and the functions that it reaches."""
    command = read_command(name)
    lines = [*_arguments(command), *_tail(command), *(text for _, text in command.body)]
    return "\n".join([*lines, *find_sources("\n".join(lines))])


_STORED = """\
local request_line, request_number, found, answer
if request then
  request_line, request_number = string.match(request, '^(%C+):(%d+)$')
  if not request_line or #request > constants.MAX_NAME_LENGTH then requests.refuse_form(request) end
  request_number = tonumber(request_number)
  local stored = redis.call('GET', keys.request(request_line))
  local latest, command
  if stored then latest, answer, command = cmsgpack.unpack(stored) end
  found = latest == request_number
  if found and command and command ~= COMMAND then requests.refuse_command(request, command) end
  if stored and latest > request_number then requests.refuse(request_line) end
end""".splitlines()


def _stored(command: Command) -> Iterator[str]:
    """Yield Lua that reads the stored answer of the request."""
    yield from (line.replace("COMMAND", f"'{command.name}'") for line in _STORED)


def _definitions(blocks: list[Block]) -> Iterator[Line]:
    """Yield the definitions; blocks of one library share its locals."""
    for _, of_library in itertools.groupby(blocks, lambda block: block.lib):
        yield "do", None
        yield from _written_out(of_library)
        yield "end", None


def _written_out(blocks: Iterable[Block]) -> Iterator[Line]:
    for block in blocks:
        file = known_libraries()[block.lib]
        yield from ((text, (file, number)) for number, text in block.written_out)


_TAIL_NAMES = {"request_line", "request_number", "found", "answer"}  # variables of each script

_BODY = "body"  # stands for the body of a command

_ON_DEMAND = """\
end
return rawget(lib, name)
end})""".splitlines()


def _definitions_on_demand(deferred: dict[Block, list[Block]]) -> Iterator[Line]:
    """Yield Lua that defines a function when it is first needed.

    It finds the function by the length of its name first: there may be hundreds.
    """
    if not deferred:
        return
    by_length: dict[int, list[Block]] = {}
    for function in deferred:
        by_length.setdefault(len(_name_in_lib(function)), []).append(function)
    yield "lib = {}", None
    yield "setmetatable(lib, {__index = function(_, name)", None
    yield "local length = #name", None
    for length, functions in sorted(by_length.items()):
        yield f"{'if' if length == min(by_length) else 'elseif'} length == {length} then", None
        for function in functions:
            word = "if" if function is functions[0] else "elseif"
            yield f"{word} name == {_quoted(_name_in_lib(function))} then", None
            yield from _written_out(deferred[function])
        yield "end", None
    yield from ((text, None) for text in _ON_DEMAND)


def _name_in_lib(function: Block) -> str:
    """Return the name under which the table `lib` has a function."""
    return f"{function.lib}__{function.name}"


def name_functions(line: str, usual: Collection[str]) -> str:
    """Name library functions as scripts do: locals, or members of the table of the others.

    Args:
        line: Lua.
        usual: The functions that are defined at once, as `library.name`.
    """

    def name(mention: re.Match[str]) -> str:
        if mention[1] not in known_libraries():
            return mention[0]
        function = f"{mention[1]}__{mention[2]}"
        return function if mention[0] in usual else f"lib.{function}"

    return MENTION.sub(name, line)


def _quoted(text: str) -> str:
    return f"'{escape(text)}'"


def _arguments(command: Command) -> Iterator[str]:
    """Yield Lua that turns KEYS and ARGV into checked locals."""
    if command.key:
        yield f"local {command.key} = args.{command.key_type}({_quoted(command.key)}, KEYS[1])"
    if command.keys:
        yield f"local {command.keys} = args.queues(KEYS)"
    if not command.forms:
        yield from _form(command, command.lead, 1, declare=True)
        return
    at = len(command.lead.args) + 1
    yield from _form(command, command.lead, 1, declare=True)
    names = {name: None for form in command.forms.values() for name in form.names()}
    yield f"local word = layout.word({_words(command)}, ARGV[{at}])"
    yield f"local {', '.join([*names, 'rest_end'])}"
    for index, (word, form) in enumerate(command.forms.items()):
        yield f"{'if' if index == 0 else 'elseif'} word == {_quoted(word)} then"
        yield from _form(command, form, at + 1, declare=False)
    yield "end"


def _words(command: Command) -> str:
    words = ", ".join(f"{word} = true" for word in command.forms)
    return f"{{{words}}}, {_quoted(command.default) if command.default else 'nil'}"


def _form(command: Command, form: Form, at: int, *, declare: bool) -> Iterator[str]:
    local = "local " if declare else ""
    for arg in form.args:
        if arg.type == "literal":
            yield f"layout.literal({_quoted(arg.name)}, ARGV[{at}])"
        else:
            yield f"{local}{arg.name} = {_read(arg, f'ARGV[{at}]')}"
        at += 1
    last = f"{at}"
    if form.rest:
        known = (
            ", {" + ", ".join(f"{option.name} = true" for option in form.options) + "}"
            if form.rest.type == "any_jid"
            else ""
        )
        rest = form.rest
        call = f"layout.rest({_quoted(rest.name)}, args.{rest.type}, {at}{known})"
        yield f"{local}{rest.name}, rest_end = {call}"
        last = "rest_end"
    if form.batch:
        yield from _each(form, at)
        last = "batch_end"
    if form.options:
        yield from _options(form, last, declare=declare)
    elif not command.forms or form is not command.lead:
        yield f"layout.no_more({last})"


def _options(form: Form, first: str, *, declare: bool) -> Iterator[str]:
    """Yield Lua that reads the options; most calls have none but the id of their request."""
    own = [option for option in form.options if option not in form.shared]
    has_table = form.shared and not form.batch
    names = [*(option.name for option in own), *(["options"] if has_table else [])]
    if declare:
        yield f"local {', '.join(names)}"
    if any(option.name == "request" for option in own):
        yield f"if #ARGV == {first} + 1 and ARGV[{first}] == 'request' then"
        yield f"  request = ARGV[{first} + 1]"
        if has_table:
            yield "  options = {}"
        yield "else"
    else:
        yield "do"
    known = ", ".join(f"{option.name} = true" for option in form.options)
    yield f"  local option = layout.options({{{known}}}, {first})"
    for option in own:
        yield f"  {option.name} = {_read_option(option)}"
    if has_table:
        reads = [_read_option(option) for option in form.shared]
        yield f"  options = {_table(form.shared, reads)}"
    yield "end"


def _each(form: Form, at: int) -> Iterator[str]:
    """Yield Lua that defines `each`, by which the body goes through the batch.

    It returns a reply for each tuple; an error does not affect the others.
    """
    width = len(form.batch)
    least = sum(not arg.optional for arg in form.batch)
    reads = [_read(arg, arg.name) for arg in form.batch]
    if form.shared:
        own = width - len(form.shared)
        # Rows of the least width have none of the options.
        reads[own:] = [f"last >= {own} and {_table(form.shared, reads[own:])} or {{}}"]
    yield f"local batch_end, row_width = layout.batch({at}, {least}, {width})"
    yield "local function each(perform)"
    yield "  local answers, argv, last = {}, ARGV, row_width - 1"
    yield "  local function perform_one(i)"
    yield f"    local {', '.join(arg.name for arg in form.batch)} = unpack(argv, i, i + last)"
    yield f"    return perform({', '.join(reads)})"
    yield "  end"
    yield f"  for i = {at + 1}, batch_end - 1, row_width do"
    yield "    local accepted, answer = pcall(perform_one, i)"
    yield "    if not accepted then answer = errors.from_pcall(answer) end"
    yield "    answers[#answers + 1] = answer"
    yield "  end"
    yield "  return answers"
    yield "end"


def _check(arg: Arg) -> str:
    """Return the function that checks an argument: that of its type in args, unless it is a job."""
    return "job_json.check" if arg.type == "job_json" else f"args.{arg.type}"


def _read(arg: Arg, value: str) -> str:
    call = f"{_check(arg)}({_quoted(arg.name)}, {value})"
    return f"{value} and {value} ~= '' and {call} or nil" if arg.optional else call


def _read_option(option: Arg) -> str:
    """Return Lua that reads an option; nil if absent; an empty one is checked."""
    value = f"option.{option.name}"
    if option.type == "request":
        return value
    return f"{value} and {_check(option)}({_quoted(option.name)}, {value})"


def _table(members: list[Arg], values: list[str]) -> str:
    pairs = zip(members, values, strict=True)
    return f"{{{', '.join(f'{arg.name} = {value}' for arg, value in pairs)}}}"


def _answering(body: list[Line]) -> Iterator[Line]:
    """Yield Lua that sets `answer` to what the body of a command returns.

    A body that returns only at its end needs no function: each call would have to make it, with a
    variable for each argument that it uses.
    """
    texts = [text for text, _ in body]
    last = max((n for n, text in enumerate(texts) if text.startswith("return ")), default=None)
    if _returns_early(texts[:last]):
        yield "answer = (function()", None
        yield from body
        yield "end)()", None
        return
    yield "do", None
    for number, (text, origin) in enumerate(body):
        yield (f"answer = {text.removeprefix('return ')}" if number == last else text), origin
    yield "end", None


def _returns_early(texts: list[str]) -> bool:
    """Return whether one of these lines returns, other than in functions of their own."""
    statement = ""
    for text in texts:
        statement = statement if text.startswith((" ", "end")) else text
        if re.search(r"\breturn\b", text) and "function(" not in statement:
            return True
    return False


def _reaches(command: Command, function: str) -> bool:
    """Return whether a command may call a function of a library."""
    text = "\n".join([*_arguments(command), *(text for _, text in command.body)])
    return reaches(write_out(text), function)


def _tail(command: Command) -> Iterator[str]:
    """Yield Lua that runs the body, once for each request id, and then what it has noted.

    The reply of a command that has stored notes says so, and when it was called.
    """
    if not command.writes:
        yield _BODY
        return
    yield from _stored(command)
    yield "if not found then"
    yield _BODY
    if _reaches(command, "notes.add"):
        now = "now" if "now" in command.names() else ""
        yield f"  if call.notes then agenda.run({now}) end"
    yield "  if request then"
    yield f"    local packed = cmsgpack.pack(request_number, answer, '{command.name}')"
    seconds = f"'{constant('ANSWER_TTL')}'"  # Redis formats numbers, which takes longer
    yield f"    redis.call('SET', keys.request(request_line), packed, 'EX', {seconds})"
    yield "  end"
    yield "end"
    says_so = _reaches(command, "notes.store") or _reaches(command, "notes.find_stored")
    if says_so and command.name != "agenda":
        # What the first one of repeated calls has stored is due at once.
        yield "if call.has_stored_notes or found and notes.is_due(0) then"
        time = "now and string.format('%.17g', now)" if "now" in command.names() else "nil"
        yield f"  return {{{_quoted(NOTED)}, {time} or '', {command.present}}}"
        yield "end"
    yield f"return {command.present}"


def _answer_only_tail(command: Command) -> Iterator[str]:
    """Yield Lua that returns the stored answer, or the error of a server without memory."""
    yield from _stored(command)
    yield "if not found then return redis.error_reply('OOM and it was not carried out before') end"
    yield f"return {command.present}"
