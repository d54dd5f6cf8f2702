"""The handlers of a worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType

from aioqless.errors import DuplicateKlass, UnknownKlass
from aioqless.handlers.collect import Declared, declared
from aioqless.handlers.handler import Handler


class Handlers:
    """The handlers of a worker, by klass and alias."""

    def __init__(self, handlers: Iterable[Handler] = ()) -> None:
        self._by_klass: dict[str, Handler] = {}
        for handler in handlers:
            for klass in (handler.klass, *handler.aliases):
                if self._by_klass.setdefault(klass, handler) is not handler:
                    raise DuplicateKlass(f"{klass} is claimed by both {_place(self._by_klass[klass])} and {_place(handler)}")

    @classmethod
    def collect(cls, *sources: ModuleType | Declared | str) -> Handlers:
        """The handlers of modules (or of their dotted names), and handlers given one by one. Raises DuplicateKlass."""
        return cls(declared(Handler, sources))

    def get(self, klass: str) -> Handler | None:
        """The handler of a klass; None when there is none."""
        return self._by_klass.get(klass)

    def find(self, klass: str) -> Handler:
        """The handler of a klass. Raises UnknownKlass."""
        handler = self._by_klass.get(klass)
        if handler is None:
            known = ", ".join(sorted(self._by_klass)) or "none"
            raise UnknownKlass(f"no handler here claims {klass!r}; this worker knows {known}")
        return handler

    def __len__(self) -> int:
        return len({id(handler) for handler in self._by_klass.values()})

    def __iter__(self) -> Iterator[Handler]:
        return iter({id(handler): handler for handler in self._by_klass.values()}.values())


def _place(handler: Handler) -> str:
    return f"{handler.fn.__module__}.{handler.fn.__qualname__}"
