"""The bins of histograms: named ones, as qless has them and finer, and logarithmic ones."""

from __future__ import annotations

from typing import Final

import numpy as np

from aioqless.contrib.lake.tables.columns import DAY, Floats, Integers

MINUTE, HOUR, QUARTER = 60, 3600, 900

# In the order in which Redis keeps its counters: seconds, minutes, hours, days.
QLESS: Final = (
    *(f"s{number}" for number in range(60)),
    *(f"m{number}" for number in range(1, 60)),
    *(f"h{number}" for number in range(1, 24)),
    *(f"d{number}" for number in range(1, 7)),
)
_LETTERS: Final = "smqhd"
_WIDTHS: Final = {"s": 1, "m": MINUTE, "q": QUARTER, "h": HOUR, "d": DAY}
_ENDS: Final = (MINUTE, HOUR, DAY, 3 * DAY)  # where the bins of the next letter begin
_NUMBERS: Final = 1 << 40

PER_OCTAVE: Final = 64  # logarithmic bins between a number and its double: each is 1.1 % wide
_LEAST: Final = 1e-6  # times are known to the microsecond


def fine(seconds: Floats) -> Integers:
    """Return the code of each number's bin, which `fine_name` names.

    Bins are s0 to s59, m1 to m59, quarters of an hour q4 to q95, hours h24 to h71, then days from
    d3 on.
    """
    letters = np.searchsorted(_ENDS, seconds, side="right")
    widths = np.array([_WIDTHS[letter] for letter in _LETTERS])[letters]
    codes: Integers = letters * _NUMBERS + (seconds // widths).astype(np.int64)
    return codes


def fine_name(code: int) -> str:
    """Return the name of a bin, such as q5."""
    return f"{_LETTERS[code // _NUMBERS]}{code % _NUMBERS}"


def fine_code(name: str) -> int:
    """Return the code of a bin's name."""
    return _LETTERS.index(name[0]) * _NUMBERS + int(name[1:])


def qless(name: str) -> str:
    """Return the bin of qless in which a fine bin is.

    qless has hours within the first day, and days after it.
    """
    letter, number = name[0], int(name[1:])
    if letter == "q":
        return f"h{number // 4}"
    return f"d{number // 24}" if letter == "h" else name


def span(name: str) -> tuple[int, int]:
    """Return where a bin begins and ends, in seconds; the end is not in it."""
    width, number = _WIDTHS[name[0]], int(name[1:])
    return number * width, (number + 1) * width


def logarithmic(seconds: Floats) -> Integers:
    """Return the logarithmic bin of each number: the power of 2^(1/64) that is next below it."""
    bins: Integers = np.floor(np.log2(np.maximum(seconds, _LEAST)) * PER_OCTAVE).astype(np.int64)
    return bins


def logarithmic_middle(bins: Integers) -> Floats:
    """Return the number in the middle of each logarithmic bin: at most 0.6 % off any in it."""
    middle: Floats = np.exp2((bins + 0.5) / PER_OCTAVE)
    return middle
