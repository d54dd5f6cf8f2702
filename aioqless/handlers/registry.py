"""The handlers of a worker, by klass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import ModuleType

from aioqless.client.new_job import DEFAULT_QUEUE
from aioqless.errors import DuplicateKlass, UnknownKlass
from aioqless.handlers.discovery import Source, declared
from aioqless.handlers.handler import Handler
from aioqless.hints import did_you_mean

MOST_LISTED = 10  # known klasses in the message about an unknown one


class Handlers:
    """The handlers of a worker, by klass and alias.

    Raises:
        DuplicateKlass: Two handlers claim a klass.
    """

    def __init__(self, handlers: Iterable[Handler] = ()) -> None:
        self._by_klass: dict[str, Handler] = {}
        for handler in handlers:
            for klass in (handler.klass, *handler.aliases):
                if self._by_klass.setdefault(klass, handler) is not handler:
                    raise DuplicateKlass(
                        f"klass {klass} is declared by both {_location(self._by_klass[klass])} and "
                        f"{_location(handler)}: give one of them another klass"
                    )

    @classmethod
    def collect(cls, *sources: Source) -> Handlers:
        """Collect the handlers of a worker.

        Args:
            sources: Modules or their dotted names, handlers, and lists of these.

        Raises:
            DuplicateKlass: Two handlers claim a klass.
            TypeError: A source is something else.
            ValueError: There is no handler, with which every job would fail.
        """
        handlers = declared(Handler, sources)
        if not handlers:
            raise ValueError(
                f"there is no handler in {_listed(sources)}: decorate functions with @aioqless.job"
                if any(sources)
                else "a worker needs handlers: pass modules or handlers, as in "
                "Worker(client, app.jobs) or Worker(client, [greet])"
            )
        return cls(handlers)

    def get(self, klass: str) -> Handler | None:
        """Return the handler of a klass; None when there is none."""
        return self._by_klass.get(klass)

    def find(self, klass: str) -> Handler:
        """Return the handler of a klass; raise UnknownKlass when there is none."""
        handler = self._by_klass.get(klass)
        if handler is None:
            raise self.unknown(klass)
        return handler

    @property
    def takes_bulks(self) -> bool:
        """Whether a handler takes many jobs at once."""
        return any(handler.is_bulk for handler in self)

    def unknown(self, klass: str) -> UnknownKlass:
        """Return the error for a klass without a handler."""
        return UnknownKlass(_describe_unknown(klass, tuple(self._by_klass)))

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that the handlers name; `default` is the first if one of them names none."""
        names = dict.fromkeys(handler.queue or DEFAULT_QUEUE for handler in self)
        return tuple(sorted(names, key=lambda name: name != DEFAULT_QUEUE))

    def __len__(self) -> int:
        return len({id(handler) for handler in self._by_klass.values()})

    def __iter__(self) -> Iterator[Handler]:
        return iter({id(handler): handler for handler in self._by_klass.values()}.values())


def _listed(sources: Iterable[Source]) -> str:
    return ", ".join(
        each.__name__ if isinstance(each, ModuleType) else repr(each) for each in sources
    )


def _location(handler: Handler) -> str:
    return f"{handler.fn.__module__}.{handler.fn.__qualname__}"


@lru_cache(1000)  # the same job may be offered many times
def _describe_unknown(klass: str, known: tuple[str, ...]) -> str:
    hint = did_you_mean(klass, known)
    more = f" and {len(known) - MOST_LISTED} more" if len(known) > MOST_LISTED else ""
    listed = ", ".join(sorted(known)[:MOST_LISTED]) or "none"
    return f"there is no handler for klass {klass!r}{hint}; this worker knows {listed}{more}"
