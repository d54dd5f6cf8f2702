"""Coroutines that the code under test forgot to await."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CoroutineType

from aioqless.errors import AioqlessError
from aioqless.handlers.put_call import unawaited_puts

_PACKAGE = Path(__file__).parents[1]


@contextmanager
def refuse_unawaited() -> Iterator[None]:
    """Raise AioqlessError after the block if a coroutine of this package was never awaited in it.

    Python only warns, from where the coroutine is deleted; the other warnings are passed on.
    """
    unawaited_puts.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        yield
    forgotten = [each for each in caught if _is_own(each.source)]
    puts = list(unawaited_puts)
    for each in caught:
        if each not in forgotten:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    if forgotten or puts:
        found = [f"{each.filename}:{each.lineno}: {each.message}" for each in forgotten]
        where = "; ".join([*found, *puts])
        raise AioqlessError(f"{where}; write `await` before the call")


def _is_own(source: object) -> bool:
    if not isinstance(source, CoroutineType):
        return False
    return _PACKAGE in Path(source.cr_code.co_filename).parents
