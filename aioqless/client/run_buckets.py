"""Buckets of durations, by which workers count runs and waits."""

from __future__ import annotations

import math

UNITS = 10_000  # of stored sums, in a second
# Buckets of durations in each doubling: bucket n begins at 2 ** (_FIRST + n / buckets) s. The first
# and the last have all that is beyond.
RUN_BUCKETS, WAIT_BUCKETS = 1.5, 1.0
WAITS = 64  # what is added to the bucket of a wait where runs and waits are counted together
_FIRST, _LAST = -13, 19


def bucket_of(seconds: float, buckets: float) -> int:
    """Return the bucket of a duration; `buckets` is RUN_BUCKETS or WAIT_BUCKETS."""
    exponent = math.log2(seconds) if seconds > 0 else _FIRST
    return int((min(max(exponent, _FIRST), _LAST - 1e-6) - _FIRST) * buckets)


def begin_of(bucket: float, buckets: float) -> float:
    """Return the duration at which a bucket begins; of a fraction, one within it."""
    return math.pow(2, _FIRST + bucket / buckets)
