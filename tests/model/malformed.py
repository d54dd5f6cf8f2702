"""Calls with exactly one invalid argument, which every command must refuse."""

from typing import Any, TypeAlias

Call: TypeAlias = tuple[tuple[str, ...], dict[str, Any]]
Bad: TypeAlias = dict[str, list[Any]]

NAME = [""]
NEW_NAME = ["", "a\x01b", "tab\t", "del\x7f", "x" * 513]
NEW_JID = [*NEW_NAME, "j-history", "j-dependencies", "j-dependents"]
NOW = ["soon", -1, "nan", "inf", 2e11]
DELAY = ["later", -0.5, "nan", 2e10]
WHOLE = ["many", -1, 0.5, "nan", "inf"]
PRIORITY = ["high", "nan", "inf", "-inf", 2e9]
INTERVAL = ["often", 0, -60, "nan", 2e10]
DOCUMENT = ["{", "false", "nope", '{"a":}']
JSON_STRINGS = ["[", '"t1"', "[1]", '[""]', '{"a": "b"}', "null"]
JSON_TAGS = [*JSON_STRINGS, '["a\\nb"]']
WORDS: list[Any] = [[""], ["t1", ""]]
NEW_WORDS: list[Any] = [*WORDS, ["a\x01b"]]


def malformed_calls(
    now: float, jid: str, worker: str, queue: str, held: str, template: str
) -> list[Call]:
    """Yield every such call.

    All other arguments are valid if `worker` runs `jid` in `queue` and `held` waits on
    dependencies.
    """
    a_put = {"queue": queue, "jid": "j1", "klass": "K", "data": "{}", "now": now}
    bad_put: Bad = {
        "queue": NEW_NAME,
        "jid": NEW_JID,
        "klass": NEW_NAME,
        "data": [*DOCUMENT, ""],
        "now": NOW,
    }
    bad_options: Bad = {"priority": PRIORITY, "tags": JSON_TAGS, "retries": WHOLE}
    a_stage = {"delay": 0}
    bad_stage: Bad = {"delay": DELAY, "depends": [*JSON_STRINGS, '["j1"]']}
    a_run = {"jid": jid, "worker": worker, "now": now}
    bad_run: Bad = {"now": NOW}
    bad_reservation: Bad = {"jid": NAME, "worker": NAME, "now": NOW}
    a_failure = {"group": "g1", "message": "no"}
    bad_failure: Bad = {"group": NEW_NAME}
    a_dependent = {"jid": held, "jids": ["j6"], "now": now}
    an_end = {**a_run, "queue": queue, "data": ""}
    a_template = {**a_put, "interval": 60, "offset": 0}
    bad_template: Bad = {"interval": INTERVAL, "offset": DELAY, "backlog": WHOLE}
    bad_pairs: list[Any] = [
        ["priority"],
        ["priority", "high"],
        ["interval", 0],
        ["colour", 1],
        ["queue", ""],
    ]
    bad_pairs += [["data", "{"], ["data", "[]", "retries", -1], ["klass", "K", "backlog"]]
    bad_page: Bad = {"offset": WHOLE, "count": WHOLE}
    plausible: list[tuple[tuple[str, ...], dict[str, Any], Bad]] = [
        (("put",), {**a_put, **a_stage}, {**bad_put, **bad_options, **bad_stage}),
        (("requeue",), {**a_put, **a_stage}, {**bad_put, "jid": NAME, **bad_options, **bad_stage}),
        (
            ("pop",),
            {"queue": queue, "worker": worker, "count": 1, "now": now},
            {"queue": NAME, "worker": NEW_NAME, "count": WHOLE, "now": NOW},
        ),
        (
            ("peek",),
            {"queue": queue, "count": 1, "now": now},
            {"queue": NAME, "now": NOW, **bad_page},
        ),
        (("heartbeat",), a_run, {**bad_run, "data": DOCUMENT}),
        (("complete",), an_end, {**bad_run, "data": DOCUMENT, "delay": [5], "depends": ['["j6"]']}),
        (
            ("complete",),
            {**an_end, "next": "b"},
            {"next": NEW_NAME, "delay": DELAY, "depends": JSON_STRINGS},
        ),
        (("fail",), {**a_run, **a_failure}, {**bad_failure, "now": NOW, "data": DOCUMENT}),
        (("retry",), {**a_run, "queue": queue}, {**bad_run, "delay": DELAY}),
        (("retry",), {**a_run, "queue": queue, "delay": 0, **a_failure}, {"group": NEW_NAME[1:]}),
        (("release",), a_run, {**bad_run, "delay": DELAY}),
        (
            ("reserve",),
            {"queue": queue, "person": "p", "worker": "p@1", "limit": 60, "now": now},
            {
                "queue": NAME,
                "person": NEW_NAME,
                "worker": NEW_NAME,
                "limit": [*INTERVAL, 86401],
                "now": NOW,
                "again": WHOLE,
            },
        ),
        (("extend",), {**a_run, "limit": 60}, {**bad_reservation, "limit": [*INTERVAL, 86401]}),
        (
            ("hand_over",),
            {**a_run, "to": "p", "limit": 60},
            {**bad_reservation, "to": [*NEW_NAME, worker], "limit": [*INTERVAL, 86401]},
        ),
        (("skip",), {**a_run, "person": "p"}, {**bad_reservation, "person": NEW_NAME}),
        (
            ("revive", "group"),
            {"group": "g1", "now": now},
            {"group": NAME, "now": NOW, "count": WHOLE},
        ),
        (("revive", "job"), {"jid": jid, "now": now}, {"jid": NAME, "now": NOW, "data": DOCUMENT}),
        (("timeout",), {"now": now, "jids": [jid]}, {"now": NOW, "jids": WORDS}),
        (
            ("clear",),
            {
                "queue": queue,
                "state": "waiting",
                "offset": 0,
                "now": now,
                "states": ["waiting", "failed"],
            },
            {
                "queue": NAME,
                "state": ["", "running", "depends", "failed"],
                "offset": WHOLE,
                "now": NOW,
                "states": [["x"], []],
            },
        ),
        (("depends", "on"), a_dependent, {"jids": [*WORDS, [held]], "now": NOW}),
        (("depends", "off"), a_dependent, {"jids": WORDS, "now": NOW}),
        (
            ("unfail",),
            {"queue": queue, "group": "g1", "now": now},
            {"queue": NEW_NAME, "group": NAME, "now": NOW, "count": WHOLE},
        ),
        (("priority",), {"jid": jid}, {"priority": PRIORITY}),
        (
            ("log",),
            {"jid": jid, "message": "m", "now": now},
            {"message": NAME, "now": NOW, "data": DOCUMENT},
        ),
        (("tag", "add"), {"jid": jid, "now": now, "tags": ["t1"]}, {"tags": NEW_WORDS, "now": NOW}),
        (("tag", "remove"), {"jid": jid, "now": now, "tags": ["t1"]}, {"tags": WORDS, "now": NOW}),
        (("tag", "get"), {"tag": "t1"}, {"tag": NAME, **bad_page}),
        (("tag", "top"), {}, bad_page),
        (("track", "track"), {"jid": jid, "now": now}, {"jid": NAME, "now": NOW}),
        (("track", "untrack"), {"jid": jid, "now": now}, {"jid": NAME, "now": NOW}),
        (("recur", "on"), a_template, {**bad_put, **bad_options, **bad_template}),
        (("recur", "update"), {"jid": template}, {"pairs": bad_pairs}),
        (("recur", "tag"), {"jid": template}, {"tags": NEW_WORDS}),
        (("recur", "untag"), {"jid": template}, {"tags": WORDS}),
        (("config", "set"), {"option": "heartbeat", "value": "1"}, {"option": NAME}),
        (("config", "unset"), {}, {"option": NAME}),
        (("pause",), {}, {"queues": WORDS}),
        (("unpause",), {}, {"queues": WORDS}),
        (("forget",), {}, {"queues": WORDS}),
        (("deregister",), {}, {"workers": WORDS}),
        (
            ("jobs",),
            {"state": "running", "now": now, "queue": queue},
            {"state": ["sleeping", ""], "now": NOW, "queue": NAME, **bad_page},
        ),
        (("failed",), {"group": "g1"}, {"offset": WHOLE, "count": WHOLE}),
        (("queues",), {"now": now}, {"now": NOW}),
        (("workers",), {"now": now}, {"now": NOW}),
        (("length",), {}, {"queue": NAME}),
        (("stats",), {"queue": queue, "date": now}, {"queue": NAME, "date": NOW}),
    ]
    return [
        (words, {**given, argument: value})
        for words, given, bad in plausible
        for argument, values in bad.items()
        for value in values
    ]
