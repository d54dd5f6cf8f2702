"""Grant: what the sender of a request may put, see and change."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aioqless.contrib.http import Identity
from aioqless.contrib.http.identity import matches
from aioqless.contrib.http.json_api import RequestRefused

_NAME = re.compile(r"[A-Za-z0-9_]{1,32}")


@dataclass(frozen=True)
class Grant:
    """What an identity may do.

    It sees, retries, cancels and signals the jobs that it put, whose jids begin with its name, and
    those of browsers whose tokens it issued.
    """

    identity: Identity

    def __post_init__(self) -> None:
        issuer = self.identity.issuer or self.identity
        if not _NAME.fullmatch(issuer.name):
            why = "Your name must be 1 to 32 letters, digits and '_': jids begin with it."
            raise RequestRefused(403, "name", why)

    @property
    def is_browser(self) -> bool:
        """Whether it is that of a browser's token."""
        return self.identity.issuer is not None

    @property
    def owner(self) -> str:
        """The beginning of the names of what is put, before a `-`."""
        return self.identity.name

    def owns(self, jid: str) -> bool:
        """Return whether a job was put by this identity, or with a token that it has issued."""
        return jid.startswith(
            f"{self.owner}-" if self.is_browser else (f"{self.owner}-", f"{self.owner}.")
        )

    def may_put(self, klass: str) -> bool:
        """Return whether it may put jobs of a klass."""
        issuer = self.identity.issuer or self.identity
        return matches(klass, self.identity.may_put) and matches(klass, issuer.may_put)

    def may_find(self, jid: str) -> bool:
        """Return whether it may see a job, depending on its klass unless it `owns` the job."""
        if self.owns(jid):
            return True
        return jid in self.identity.jids if self.is_browser else bool(self.identity.may_read)

    def may_see(self, jid: str, klass: str) -> bool:
        """Return whether it sees a job."""
        if self.owns(jid) or self.is_browser:
            return self.may_find(jid)
        return matches(klass, self.identity.may_read)
