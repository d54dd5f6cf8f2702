"""Check the composed scripts: `python -m tests.lint.scripts`, which `nox -s lint` runs.

Every command composes, its header is complete, its lines lead back to the source, and no library
function is unused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from aioqless import lua
from aioqless.cli import acl_roles
from aioqless.store import library_linker, script_composer
from aioqless.store.command_header import Command, command_names, read_command
from aioqless.store.inlining import insert_namespace
from aioqless.store.library_linker import MENTION
from aioqless.store.script_composer import compose, name_functions
from tests.codegen import REPLIES
from tests.source import LUA

COMMANDS = [read_command(name) for name in command_names()]
FLAGS = {"no-writes", "allow-oom"}
ERRORS = {
    *("NOJOB", "LOCKLOST", "BADSTATE", "BADARG", "HELD", "NOWORKER", "NORESULT", "NAMETAKEN"),
    *("SIGNALED", "SETCLOSED", "NOSET", "EXISTS", "FULL"),
}
ONLY_READ = acl_roles._ONLY_READ | {"TIME"}


def incomplete_header(command: Command) -> Iterator[str]:
    if not command.summary or command.summary.startswith("--"):
        yield "its header has no summary"
    for form in command.forms.values() or [command.lead]:
        if (form.returns or command.returns) not in REPLIES:
            yield f"its header returns {form.returns or command.returns}"
    for unknown in sorted({*command.flags} - FLAGS | {*command.raises} - ERRORS):
        yield f"its header has {unknown}"


def writes_of_an_answer(command: Command) -> Iterator[str]:
    """A script that only answers a repeated request writes nothing."""
    if command.writes:
        text = compose(command.name, "ql", answer_only=True).text
        for word in sorted({*re.findall(r"redis\.p?call\(\s*'([A-Z]+)'", text)} - ONLY_READ):
            yield f"it calls {word} to answer a repeated request"


def lost_origins(command: Command) -> Iterator[str]:
    script = compose(command.name, "ql")
    for line, origin in zip(script.text.splitlines(), script.origins, strict=True):
        if not origin:
            continue
        file, number = origin
        written = lua.read_script(file).splitlines()[number - 1]
        bare = library_linker.strip_comment(written)
        forms = [written, bare, re.sub("^return ", "answer = ", bare)]
        if "lib/" in file:
            forms += [library_linker.write_scalars(Path(file).stem, text) for text in forms]
        forms += [library_linker.write_out(text) for text in forms]
        if line not in {
            insert_namespace("ql", name_functions(each, command.usual)) for each in forms
        }:
            yield f"its line {line!r} isn't {file}:{number}"


def keys_defined_in_vain(command: Command) -> Iterator[str]:
    """Functions are defined only for keys that are not inlined."""
    text = compose(command.name, "ql").text
    for name in re.findall(r"^function keys\.(\w+)", text, re.MULTILINE):
        if len(re.findall(rf"\bkeys\.{name}\b", text)) == 1:
            yield f"it defines keys.{name} without use"


def use_of_check(command: Command) -> Iterator[str]:
    """Only `check` uses the libraries that compare all keys."""
    libraries = library_linker.known_libraries()
    used = {library for library, _ in MENTION.findall(script_composer.source(command.name))}
    for name in sorted(used & libraries.keys()):
        if libraries[name].startswith("lib/check/") and command.name != "check":
            yield f"it uses {libraries[name]}"


def unnamed_arguments(command: Command) -> Iterator[str]:
    """A body has its arguments by name, and its keys from keys.lua."""
    code = "\n".join(text.partition("--")[0] for _, text in command.body)
    for spelled in ("ARGV", "KEYS", "ns .."):
        if spelled in code:
            yield f"its body uses {spelled}"


def uses_of_the_table() -> Iterator[str]:
    """The name of the table of functions is for composed scripts alone."""
    for file in LUA:
        if re.search(r"\blib\b", re.sub(r"--.*", "", file.read_text("utf-8"))):
            yield f"{file}: it uses the name lib"


def unused_functions() -> Iterator[str]:
    used = {
        origin for command in COMMANDS for origin in compose(command.name, "ql").origins if origin
    }
    composer = Path(script_composer.__file__)
    text = "\n".join(file.read_text("utf-8") for file in (*LUA, composer))
    expressions = library_linker.expressions()
    for library, file in library_linker.known_libraries().items():
        for block in library_linker._blocks(library):
            inlined = library in ("keys", "constants") or block.path in expressions
            mentioned = text.count(block.path) > (library != "constants")
            is_type = library == "args" and re.search(
                rf"^-- @.*\b{block.name}\b", text, re.MULTILINE
            )
            is_python_only = block.path == "keys.partitions"
            in_script = (file, block.lines[0][0]) in used
            if not (in_script or (inlined and (mentioned or is_type)) or is_python_only):
                yield f"{file}: no command uses {block.path}"


OF_A_COMMAND = (
    incomplete_header,
    writes_of_an_answer,
    lost_origins,
    keys_defined_in_vain,
    use_of_check,
    unnamed_arguments,
)


def main() -> int:
    problems = [
        f"{command.name}: {problem}"
        for command in COMMANDS
        for find in OF_A_COMMAND
        for problem in find(command)
    ]
    problems += [*uses_of_the_table(), *unused_functions()]
    for problem in problems:
        print(problem)
    return len(problems) > 0


if __name__ == "__main__":
    sys.exit(main())
