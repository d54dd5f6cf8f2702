"""Words for browsers: what came of the last act, until the next page tells it."""

from __future__ import annotations

from collections import OrderedDict

from aioqless.contrib.http_sessions import Session

MOST = 1000  # browsers
MOST_EACH = 5


class Notes:
    """Owns the words that weren't told yet."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, list[tuple[str, str]]] = OrderedDict()

    def keep(self, session: Session, kind: str, text: str) -> None:
        """Keep a word for a browser until it loads its next page. `kind`: done or refused."""
        notes = self._kept.setdefault(session.nonce, [])
        notes[:] = [*notes[1 - MOST_EACH :], (kind, text)]
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)

    def told(self, session: Session) -> list[tuple[str, str]]:
        """The words kept for a browser; they are told once."""
        return self._kept.pop(session.nonce, [])
