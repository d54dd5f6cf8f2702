"""Invalid arguments of every command are refused with BADARG, and nothing changes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from redis.exceptions import ResponseError

from aioqless.store.command_header import Arg, Command, Form, command_names, read_command
from aioqless.store.script_composer import compose
from tests.lua.story import Story

_DIGEST = """
local keys = redis.call('KEYS', ARGV[1])
table.sort(keys)
for i, key in ipairs(keys) do keys[i] = key .. redis.call('DUMP', key) end
return redis.sha1hex(table.concat(keys))
"""

NO_NUMBERS = [
    "many",
    "nan",
    "-nan",
    "inf",
    "-inf",
    "1e999",
    "1,5",
    "1 2",
    "--1",
    "0x",
    "{}",
    "\x00",
    "1\x00",
]
NO_SECONDS = [*NO_NUMBERS, "-1", "-0.001", "1e11"]
NO_COUNTS = [*NO_NUMBERS, "-1", "1.5", "1e-3", "1e300"]
NO_NAMES = ["x" * 513, "a\nb", "\t", "a\x00b", "\x7f", "\x1b[0m"]
NO_JSON = [
    "{",
    "[",
    "[1,]",
    '{"a":}',
    "nope",
    "'a'",
    '"a',
    "\x00",
    "[1] 2",
    "{} {}",
    "," * 100,
    "[" * 2000,
]
NO_LISTS = [
    *NO_JSON,
    "{}",
    '{"a": "b"}',
    '"a"',
    "1",
    "null",
    "true",
    "[1]",
    "[null]",
    "[true]",
    '[["a"]]',
    '[""]',
    '["a", ""]',
    '["a", 1]',
]
TOO_MANY = json.dumps([str(number) for number in range(1001)])

BRANCH = '{"queue": "q", "klass": "K", "data": "1"}'

# A valid and several invalid strings of each type. Empty strings are added where they are invalid.
SAMPLES = {
    "string": "a", "text": "some text", "any_jid": "a", "name": "a-name", "jid": "a-jid",
    "queue": "mail", "new_queue": "post",
    "data": "[1]", "object": '{"a": 1}', "job_json": BRANCH,
    "time": "10", "seconds": "5", "interval": "60",
    "count": "1", "priority": "-3", "fraction": "0.5",
    "tags": '["x"]',
    "jids": '["b"]', "request": "line:1", "entry_id": "1-1",
}  # fmt: skip
WRONG = {
    "string": [],
    "text": [],
    "any_jid": [],
    "queue": ["{namespace}:q:"],
    "name": NO_NAMES,
    "jid": [*NO_NAMES, "a-history", "a-dependencies", "a-dependents", "-history"],
    "new_queue": [*NO_NAMES, "{namespace}:q:", "{namespace}:q:a\nb"],
    "data": ["false", " false\n"],
    "job_json": ["{}", "[]", BRANCH.replace('"1"', "1"), BRANCH.replace("1", "false")],
    "object": [
        *NO_JSON,
        "false",
        "[]",
        "1",
        '"a"',
        "null",
        "true",
        "{" + "x" * 70_000,
        '{"a":' * 101 + "1" + "}" * 101,
    ],
    "time": [*NO_NUMBERS, "-1", "1.1e11"],
    "seconds": NO_SECONDS,
    "interval": [*NO_SECONDS, "0", "-0"],
    "count": NO_COUNTS,
    "fraction": [*NO_NUMBERS, "-0.1", "1.1"],
    "priority": [*NO_NUMBERS, "100.1", "-100.1"],
    "tags": [*NO_LISTS, TOO_MANY, *(json.dumps([name]) for name in NO_NAMES)],
    "jids": [*NO_LISTS, TOO_MANY],
    "entry_id": ["1", "-", "1-", "-1", "1-1-1", "a-1", "1-a", "(1-1", "1-" + "9" * 20],
    "request": [
        "line",
        "line:",
        ":1",
        "line:-1",
        "line:1.5",
        "line:one",
        "a\nline:1",
        "\x00:1",
        "x" * 512 + ":1",
    ],
}
EMPTY_IS_FINE = {"text", "time", "any_jid"}

# Arguments that have more restrictions than their types.
NAMED = {
    "order": "rotation", "state": "waiting", "resolve": "resolve", "cursor": "0",
    "pairs": "priority", "worker": "ann", "next": "3600",
    "side": "right", "missing": "done", "if_dependency_fails": "fail",
    "result": "60 {}", "from": "0", "conditions": "[]", "stop": "0",
    "totals": "today",
    "states": "waiting", "place": "open", "kind": "cursor", "wait_kind": "wait",
    "seconds": "60", "values": "[0,0,9,9]", "counts": '[["mail","K",[0,0,9,9]]]',
}  # fmt: skip

# Combinations of arguments that are invalid, although each is valid: command, keys, arguments.
TOGETHER: dict[str, tuple[str, list[str], list[Any]]] = {
    "put: a job that waits for itself": ("put", ["mail"],
        ["new", "K", "{}", 1, 0, "depends", '["a", "new"]']),
    "requeue: a job that waits for itself": ("requeue", ["mail"],
        ["a", "K", "{}", 1, 0, "depends", '["a"]']),
    "complete: a delay without a next queue": ("complete", [],
        ["a", "ann", "mail", 2, "", "delay", 5]),
    "complete: dependencies without a next queue": ("complete", [],
        ["a", "ann", "mail", 2, "", "depends", '["b"]']),
    "complete: a job that waits for itself": ("complete", [],
        ["a", "ann", "mail", 2, "", "next", "post", "depends", '["a"]']),
    **{
        f"complete: {text!r} is no result": ("complete", [],
            ["a", "ann", "mail", 2, "", "result", text])
        for text in ("", "60", "60 ", " {}", "0 {}", "-1 {}", "1.5 {}", "60 {", "60 1, 2",
            "60 1] [2", "12345678901 {}")
    },
    "complete: a result of a job that goes on": ("complete", [],
        ["a", "ann", "mail", 2, "", "next", "post", "result", "60 {}"]),
    "heartbeat: a message without progress": ("heartbeat", [],
        ["a", "ann", 2, "", "message", "page 1"]),
    "heartbeat: a long message": ("heartbeat", [],
        ["a", "ann", 2, "", "progress", "0.1", "message", "x" * 4001]),
    "put_flow: a job that waits for itself": ("put_flow", [],
        [1, 1, "mail", "f", "K", "{}", "", "", "", "", '["f"]', "", "", "", ""]),
    "put_flow: a choice that there isn't": ("put_flow", [],
        [1, 1, "mail", "f", "K", "{}", *[""] * 8, "explode"]),
    "put_flow: a bad one behind a good one": (
        "put_flow", [], [1, 2, *("mail", "f", "K", "{}", *[""] * 9),
            *("mail", "g", "K", "{", *[""] * 9)]
    ),
    "depends: a job that waits for itself": ("depends", [], ["held", "on", "held"]),
    "depends on: nobody": ("depends", [], ["held", "on"]),
    "depends off: nobody": ("depends", [], ["held", "off"]),
    "deregister: nobody": ("deregister", [], []),
    "pause: nothing": ("pause", [], []),
    "unpause: nothing": ("unpause", [], []),
    "forget: nothing": ("forget", [], []),
    "pause: one without a name": ("pause", ["mail", ""], []),
    "jobs: a state that there isn't": ("jobs", [], ["sleeping", 1, "mail"]),
    "jobs: a state that there isn't, and none wanted": ("jobs", [], ["sleeping", 1, "mail", 0, 0]),
    **{f"jobs: {state} of no queue": ("jobs", [], [state, 1]) for state in ("waiting", "running",
        "stalled", "scheduled", "depends")},
    "pop_many: an order that there isn't": ("pop_many", [], ["ann", 1, 2, "random", 1, "mail", ""]),
    "import: an end that a list doesn't have": ("import", [],
        ["there:", "", 1, "queue", "mail", "up", 1]),
    "import: a queue that can't be one here": ("import", [],
        ["there:", "\n", 1, "queue", "mail", "left", 1]),
    "queues: totals of another day": ("queues", [], [1, "", 0, 10, "yesterday"]),
    "sweep: a place of one's own": ("sweep", [], ["completed", "here"]),
    "archive_trim: no id": ("archive_trim", [], ["1", "lake", 1]),
    **{
        f"config: {option} can't be {value!r}": ("config", [], ["set", option, value])
        for option, value in (("archive", "maybe"), ("archive-when-full", "explode"),
            ("archive-length", "-1"), ("archive-data", "all"))
    },
    "check: another word than resolve": ("check", [], [1, "yes"]),
    "check: a cursor of one's own": ("check", [], [1, "", "12"]),
    "recur update: half a pair": ("recur", [], ["update", "hourly", "priority"]),
    "recur update: something that there isn't": ("recur", [],
        ["update", "hourly", "colour", "red"]),
    "recur update: a bad pair after a good one": ("recur", [],
        ["update", "hourly", "klass", "New", "interval", 0]),
    "recur update: a cron expression of one with an interval": ("recur", [],
        ["update", "hourly", "cron", "* * * * *", "next", 60]),
    "recur update: an interval of one with a cron expression": ("recur", [],
        ["update", "nightly", "interval", 60]),
    "recur update: a cron expression without its next time": ("recur", [],
        ["update", "nightly", "cron", "* * * * *"]),
    "recur update: a time zone without the next time": ("recur", [],
        ["update", "nightly", "timezone", "Asia/Tokyo"]),
    "recur resume: a cron expression without its next time": ("recur", [],
        ["resume", "nightly", 10]),
    "tick: the next isn't later": ("tick", [], [10, "", 1, "nightly", 7200, 7200, 7200]),
    "tick: a good one before a bad one": ("tick", [],
        [10, "", 2, "nightly", 7200, 7200, 7300, "nightly", 7300, 7300, 7300]),
    **{
        f"recur update of cron: no {what} is {value[:20]!r}": ("recur", [],
            ["update", "nightly", "priority", 1, what, value])
        for what, type_ in {"cron": "name", "timezone": "name", "next": "seconds",
            "backlog": "count"}.items()
        for value in WRONG[type_]
    },
    **{
        f"recur update: no {what} is {value[:20]!r}": ("recur", [],
            ["update", "hourly", what, value])
        for what, type_ in {
            "priority": "priority", "retries": "count", "interval": "interval", "data": "data",
            "klass": "name", "queue": "name",
            "backlog": "count",
        }.items()
        for value in WRONG[type_]
    },
    **{
        f"config set: no {option} is {value[:20]!r}": ("config", [], ["set", option, value])
        for option in ("heartbeat", "grace-period", "jobs-history", "mail-heartbeat",
            "heartbeat-mail", "mail-max-concurrency")
        for value in NO_NUMBERS
    },
}  # fmt: skip


@dataclass(frozen=True)
class ValidCall:
    """A command, or a form of it, with a valid call."""

    command: Command
    word: str | None
    form: Form
    keys: list[str]
    lead: list[str]
    args: list[str]
    rest: list[str] = field(default_factory=list)
    batch: list[str] = field(default_factory=list)

    def argv(self, **other: list[str]) -> list[str]:
        """Return the arguments in order; `other` replaces some of them."""
        parts = {
            "lead": self.lead,
            "word": [self.word] if self.word else [],
            "args": self.args,
            "rest": self.rest,
        } | other
        batch = other.get("batch", ["1", *self.batch] if self.form.batch else [])
        options = other.get("options", [])
        end = [""] if self.form.rest and options else []
        return [
            *parts["lead"],
            *parts["word"],
            *parts["args"],
            *parts["rest"],
            *batch,
            *end,
            *options,
        ]


def every_form() -> Iterator[ValidCall]:
    for name in command_names():
        command = read_command(name)
        keys = [SAMPLES["queue"]] if command.key or command.keys else []
        lead = [sample(arg) for arg in command.lead.args]
        if not command.forms:
            yield _valid_call(command, None, command.lead, keys, [])
        for word, form in command.forms.items():
            yield _valid_call(command, word, form, keys, lead)


def _valid_call(
    command: Command, word: str | None, form: Form, keys: list[str], lead: list[str]
) -> ValidCall:
    rest = [sample(form.rest)] if form.rest else []
    if form.rest and form.rest.name == "pairs":
        rest.append("1")
    return ValidCall(
        command,
        word,
        form,
        keys,
        lead,
        [sample(arg) for arg in form.args],
        rest,
        [sample(arg) for arg in form.batch],
    )


def sample(arg: Arg) -> str:
    return arg.name if arg.type == "literal" else NAMED.get(arg.name, SAMPLES[arg.type])


def invalid_values(arg: Arg) -> list[str]:
    """Return invalid values of an argument."""
    if arg.type == "literal":
        return ["", arg.name.upper(), arg.name + " ", "1"]
    return WRONG[arg.type] + ([] if arg.optional or arg.type in EMPTY_IS_FINE else [""])


def replaced(texts: list[str], at: int, text: str) -> list[str]:
    return [*texts[:at], text, *texts[at + 1 :]]


def invalid_calls(valid: ValidCall) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield a description, keys and arguments of invalid calls."""
    command, form = valid.command, valid.form
    any_text = (
        form.rest is not None and form.rest.type == "any_jid"
    )  # at the end, an unknown option would be another jid
    if command.key:
        key = Arg(command.key, command.key_type)
        yield "no key", [], valid.argv()
        for text in invalid_values(key):
            yield f"the key is {text[:20]!r}", [text], valid.argv()
    if command.keys:
        yield "a key is empty", ["mail", ""], valid.argv()
    for part, args in (("lead", command.lead.args if command.forms else []), ("args", form.args)):
        texts = getattr(valid, part)
        for at, arg in enumerate(args):
            for text in invalid_values(arg):
                yield (
                    f"{arg.name} is {text[:20]!r}",
                    valid.keys,
                    valid.argv(**{part: replaced(texts, at, text)}),
                )
            if not arg.optional and arg.type != "time":
                before = (
                    valid.lead[:at]
                    if part == "lead"
                    else [*valid.lead, *([valid.word] if valid.word else []), *texts[:at]]
                )
                yield f"{arg.name} and all behind it are missing", valid.keys, before
    if valid.word:
        for word in ("", "other", valid.word.upper(), valid.word + "\x00"):
            yield f"the word is {word!r}", valid.keys, valid.argv(word=[word])
    if form.rest:
        for text in invalid_values(Arg(form.rest.name, form.rest.type, True)):
            yield (
                f"one of {form.rest.name} is {text[:20]!r}",
                valid.keys,
                valid.argv(rest=[*valid.rest, text]),
            )
        yield (
            f"too many {form.rest.name}",
            valid.keys,
            valid.argv(rest=[f"n{number}" for number in range(1001)]),
        )
        if not any_text:
            yield (
                f"{form.rest.name} go on after their end",
                valid.keys,
                valid.argv(rest=[*valid.rest, "", "another"]),
            )
    if form.batch:
        short = ("1/0", "1/99", "99/1", "1001/1", "1/", "1/1/1", "-1/1", "1/1\x00")
        for text in (*WRONG["count"], "", "1001", "2", "1e9", *short):
            yield (
                f"the batch has {text[:20]!r}",
                valid.keys,
                valid.argv(batch=[text, *valid.batch]),
            )
        yield (
            "the batch has fewer than were sent",
            valid.keys,
            valid.argv(batch=["0", *valid.batch[:1]]),
        )
        yield "no batch", valid.keys, valid.argv(batch=[])
    for option in form.options:
        for text in (*WRONG[option.type], *([] if option.type in EMPTY_IS_FINE else [""])):
            yield (
                f"{option.name} is {text[:20]!r}",
                valid.keys,
                valid.argv(options=[option.name, text]),
            )
        if not any_text:
            yield f"{option.name} has no value", valid.keys, valid.argv(options=[option.name])
    if form.options and not any_text:
        yield "an option that there isn't", valid.keys, valid.argv(options=["colour", "red"])
        yield "an option without a name", valid.keys, valid.argv(options=["", "red"])
        yield (
            "an option and a half",
            valid.keys,
            valid.argv(options=["request", "line:1", "colour"]),
        )
    elif not form.options:
        yield (
            "one too many",
            valid.keys,
            valid.argv(options=["another"]) if not form.rest else [*valid.argv(), "", "another"],
        )


@pytest.fixture
def namespace() -> str:
    """Return one namespace for all tests, so that the scripts are compiled once."""
    return "bad-input"


@pytest.fixture
async def filled(story: Story) -> Story:
    """Fill a namespace with all that an invalid call might change."""
    await story.redis.flushdb()
    await story.running("a", tags=["x"])
    await story.put("b", 2, delay=50, tags=["x"])
    await story.put("held", 2, depends=["a", "b"])
    await story.put("c", 2, queue="post")
    await story.recur("hourly", 2)
    await story.cron("nightly", 2, next=7200)
    return story


async def contents(story: Story) -> bytes:
    """Return a digest of every key of the namespace, which is cheap to compare."""
    digest: bytes = await story.ask("EVAL", _DIGEST, 0, story.key("*"))
    return digest


async def call(story: Story, command: str, keys: list[str], argv: list[Any]) -> Any:
    """Return the code and details of a refusal, or the reply."""
    sha = await story.ask("SCRIPT", "LOAD", compose(command, story.namespace).text)
    keys, argv = (
        [str(text).replace("{namespace}", story.namespace) for text in part]
        for part in (keys, argv)
    )
    try:
        return await story.ask("EVALSHA", sha, len(keys), *keys, *argv)
    except ResponseError as refused:
        return said(refused)


def said(refused: ResponseError) -> tuple[str, dict[str, Any]]:
    """Return code and details. (Servers append different texts.)"""
    code, _, detail = str(refused).partition(" ")
    assert detail.startswith("{"), f"not a refusal: {refused}"
    return code, json.JSONDecoder(strict=False).raw_decode(detail)[0]


FORMS = {f"{valid.command.name} {valid.word or ''}".strip(): valid for valid in every_form()}


@pytest.mark.parametrize("name", FORMS)
async def test_invalid_argument_is_refused_and_changes_nothing(filled: Story, name: str) -> None:
    valid = FORMS[name]
    before = await contents(filled)
    for what, keys, argv in invalid_calls(valid):
        reply = await call(filled, valid.command.name, keys, argv)
        assert isinstance(reply, tuple) and reply[0] == "BADARG", f"{what}: {reply!r}"
        assert reply[1]["why"] and "argument" in reply[1], what
        assert await contents(filled) == before, what


@pytest.mark.parametrize("name", FORMS)
async def test_valid_argument_in_the_same_place_is_accepted(filled: Story, name: str) -> None:
    valid = FORMS[name]
    reply = await call(filled, valid.command.name, valid.keys, valid.argv())
    assert not isinstance(reply, tuple) or reply[0] != "BADARG", reply
    for option in valid.form.options:
        for options in ([option.name, sample(option)], [option.name, sample(option)] * 2):
            reply = await call(filled, valid.command.name, valid.keys, valid.argv(options=options))
            assert (
                not isinstance(reply, tuple)
                or reply[0] != "BADARG"
                or "cannot be used without" in reply[1]["why"]
            ), reply


@pytest.mark.parametrize("name", [name for name, valid in FORMS.items() if valid.form.batch])
async def test_invalid_item_of_a_batch_is_refused_alone(filled: Story, name: str) -> None:
    valid = FORMS[name]
    before = await contents(filled)
    for at, arg in enumerate(valid.form.batch):
        for text in invalid_values(arg):
            reply = await call(
                filled,
                valid.command.name,
                valid.keys,
                valid.argv(batch=["1", *replaced(valid.batch, at, text)]),
            )
            refusal = reply if isinstance(reply, tuple) else said(reply[0])
            assert refusal[0] == "BADARG", f"{arg.name} is {text[:20]!r}: {reply!r}"
            assert await contents(filled) == before, f"{arg.name} is {text[:20]!r}"


@pytest.mark.parametrize(("command", "keys", "argv"), TOGETHER.values(), ids=TOGETHER)
async def test_incompatible_arguments_are_refused_and_change_nothing(
    filled: Story, command: str, keys: list[str], argv: list[Any]
) -> None:
    before = await contents(filled)
    reply = await call(filled, command, keys, argv)
    assert isinstance(reply, tuple) and reply[0] == "BADARG", reply
    assert await contents(filled) == before
