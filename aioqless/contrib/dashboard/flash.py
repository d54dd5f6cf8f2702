"""Flash messages: the result of a browser's last action, shown once."""

from __future__ import annotations

from aioqless.contrib.http import BoundedDict, Session

MAX_BROWSERS = 1000
MAX_PER_BROWSER = 5


class FlashMessages:
    """Owns the messages that have not been shown yet."""

    def __init__(self) -> None:
        self._messages = BoundedDict[str, list[tuple[str, str]]](MAX_BROWSERS)

    def add(self, session: Session, kind: str, text: str) -> None:
        """Keep a message until the browser loads its next page. `kind`: done or refused."""
        earlier = self._messages.get(session.nonce, [])
        self._messages[session.nonce] = [*earlier[1 - MAX_PER_BROWSER :], (kind, text)]

    def pop(self, session: Session) -> list[tuple[str, str]]:
        """Remove and return the messages of a browser."""
        return self._messages.pop(session.nonce, [])
