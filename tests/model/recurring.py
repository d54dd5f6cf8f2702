"""Recurring jobs: templates, and the instances that they put."""

import math
from collections.abc import Sequence
from typing import Any

from tests.model import arguments
from tests.model.arguments import Refusal
from tests.model.namespace import Hash, ascending
from tests.model.views import Views

DEFAULT_RETRIES = 5


class Recurring(Views):
    """The commands `recur_*`, and the instances that a pop creates."""

    def recur_on(
        self,
        *,
        queue: str,
        jid: str,
        klass: str,
        data: str,
        now: float,
        interval: float,
        offset: float,
        priority: float | None = None,
        tags: str | None = None,
        retries: float | None = None,
        backlog: float | None = None,
    ) -> str:
        """Put a template again: it keeps its count and restarts its interval."""
        chosen = {
            "priority": arguments.negated(priority or 0),
            "tags": arguments.json_strings(tags),
            "retries": DEFAULT_RETRIES if retries is None else retries,
            "backlog": backlog or 0,
        }
        template = self.hash("r", jid)
        if template:
            self.leave(jid, template["queue"], "recur")
        template.setdefault("count", 0)
        template.update(
            jid=jid,
            klass=klass,
            data=data,
            state="recur",
            queue=queue,
            type="interval",
            interval=interval,
        )
        template.update(chosen)
        template["x-first"] = now + offset if offset > interval else 0
        template.pop("x-coalesce", None)
        if backlog is None:
            template["x-coalesce"] = 1
        self.place(queue, "recur")[jid] = now + offset
        self.register_queue(queue, now)
        return jid

    def recur_off(self, *, jid: str) -> int:
        template = self.hash("r", jid)
        if template:
            self.leave(jid, template["queue"], "recur")
            self.delete("r", jid)
        return 1

    def _template(self, jid: str) -> Hash:
        template = self.hash("r", jid)
        if not template:
            raise Refusal("NOJOB", jid)
        return template

    def recur_update(self, *, jid: str, pairs: Sequence[Any]) -> int:
        """Validate all pairs before changing anything."""
        changes = [
            (key, self._template_value(key, value))
            for key, value in zip(pairs[::2], pairs[1::2], strict=True)
        ]
        template = self._template(jid)
        for key, value in changes:
            due = self.place(template["queue"], "recur")
            if key == "interval":
                longer = value - template["interval"]
                if template["x-first"] == due[jid]:
                    template["x-first"] += longer
                due[jid] += longer
            elif key == "queue":
                self.place(value, "recur")[jid] = due.pop(jid)
                self.register_queue(value, self.clock)  # type: ignore[attr-defined]
            elif key == "backlog":
                template.pop("x-coalesce", None)
            template[key] = value
        return 1

    def _template_value(self, key: str, value: Any) -> Any:
        match key:
            case "priority":
                return arguments.negated(value)
            case "retries":
                return int(value)
            case "interval" | "backlog" | "data" | "klass" | "queue":
                return value
        raise Refusal("BADARG", key)

    def recur_tag(self, *, jid: str, tags: Sequence[str]) -> list[str]:
        template = self._template(jid)
        template["tags"] = list(dict.fromkeys([*template["tags"], *tags]))
        return list(template["tags"])

    def recur_untag(self, *, jid: str, tags: Sequence[str]) -> list[str]:
        template = self._template(jid)
        template["tags"] = [tag for tag in template["tags"] if tag not in tags]
        return list(template["tags"])

    def _spawn(self, queue: str, now: float, wanted: int) -> None:
        """Put up to `wanted` instances of the templates that are due, the longest due first."""
        due = self.place(queue, "recur")
        spawned = 0
        for jid in [jid for jid in ascending(due) if due[jid] <= now][:wanted]:
            template = self.hash("r", jid)
            tick, interval, backlog = (
                math.floor(due[jid]),
                template["interval"],
                template["backlog"],
            )
            missed = (now - tick) / interval
            if "x-coalesce" in template:
                tick += math.floor(missed) * interval
            elif backlog and missed > backlog:
                tick += math.ceil(missed - backlog) * interval
            while tick <= now and spawned < wanted:
                self._make_instance(template, tick, now)
                spawned += 1
                tick += interval
                due[jid] = tick

    def _make_instance(self, template: Hash, tick: float, now: float) -> None:
        """Return the next instance, with a number whose jid is free."""
        template["count"] += 1
        while self.exists(f"{template['jid']}-{template['count']}"):
            template["count"] += 1
            template["x-uncounted"] = template.get("x-uncounted", 0) + 1
        jid, queue = f"{template['jid']}-{template['count']}", template["queue"]
        shared = {
            field: template[field]
            for field in ("klass", "data", "priority", "tags", "queue", "retries")
        }
        self.hash("j", jid).update(
            shared, jid=jid, worker="", expires=0, time=tick, remaining=template["retries"]
        )
        self.job(jid)["spawned_from_jid"] = template["jid"]
        self.attach(jid, template["tags"], now)
        self.append_history(jid, tick, "put", {"q": queue})
        self.file_as_waiting(jid, queue, tick)
