"""The Lua commands of this extension, one typed method for each.

Generated from the headers in `lua` by `python -m tests.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from collections.abc import Sequence

from aioqless.store import Call, ExtensionCommands, Reply
from aioqless.store.call import encode, read_list, read_nothing, read_text, read_texts


class MetricsCommands(ExtensionCommands):
    """The commands of this extension, each to be awaited."""

    def mark(
        self, *, text: str, now: float | None = None, request: str | None = None,
    ) -> Call[None]:
        """Mark this moment in charts."""
        argv = [encode(text), self._encode_time(now)]
        return Call(
            self.send, "mark", read_nothing, [encode(self.namespace)], argv, request, writes=True,
        )

    def metrics_series(self) -> Call[list[str]]:
        """List the series."""
        argv = [b"series"]
        return Call(self.send, "metrics", read_texts, [encode(self.namespace)], argv)

    def metrics_periods(
        self, *, seconds: int, since: float | None = None, now: float | None = None,
        series: Sequence[str] = (),
    ) -> Call[list[Reply]]:
        """Read records of series, see run_metrics.lua."""
        argv = [
            b"periods", encode(seconds), self._encode_time(since), self._encode_time(now),
            *map(encode, series), b"",
        ]
        return Call(self.send, "metrics", read_list, [encode(self.namespace)], argv)

    def metrics_facts(self, *, workers: Sequence[str] = ()) -> Call[list[str]]:
        """Return what workers are."""
        argv = [b"facts", *map(encode, workers), b""]
        return Call(self.send, "metrics", read_texts, [encode(self.namespace)], argv)

    def metrics_history(self, *, worker: str) -> Call[str]:
        """Return the memory and busy slots of a worker."""
        argv = [b"history", encode(worker)]
        return Call(self.send, "metrics", read_text, [encode(self.namespace)], argv)

    def metrics_marks(self) -> Call[list[str]]:
        """List the marks."""
        argv = [b"marks"]
        return Call(self.send, "metrics", read_texts, [encode(self.namespace)], argv)
