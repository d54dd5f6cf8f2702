"""Records of open browser sessions, so that a logout ends a session in every process."""

from __future__ import annotations

from collections.abc import Sequence

from aioqless.store import Store


class SessionRecords:
    """Records by id, each with a proof and an expiry.

    Pass digests as ids and proofs: other programs may read Redis.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def save(self, id: str, proof: str, *, ttl: float) -> None:
        """Save a record.

        Args:
            id: Id of the record.
            proof: What the session proves itself with.
            ttl: Seconds for which it is kept.
        """
        await self._store.session_keep(id=id, proof=proof, seconds=ttl)

    async def read(self, ids: Sequence[str]) -> list[str | None]:
        """Return the proof of each record; None for one that does not exist.

        Args:
            ids: Ids of records.
        """
        proofs: list[str | None] = await self._store.session_read(ids=ids)
        return [proof or None for proof in proofs]

    async def delete(self, id: str) -> None:
        """Delete a record.

        Args:
            id: Id of the record.
        """
        await self._store.session_drop(id=id)
