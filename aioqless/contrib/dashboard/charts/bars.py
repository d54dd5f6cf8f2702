"""Bar charts: values over time, waiting and running times of a day, totals of the last days."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from markupsafe import Markup

from aioqless.cli.presentation.formatting import format_duration
from aioqless.cli.presentation.histograms import label_bars, merge_counters
from aioqless.client.queue_statistics import DayTotals, Durations
from aioqless.contrib.dashboard import formatting
from aioqless.contrib.metrics import Mark

WIDTH, HEIGHT, FOOT = 560, 120, 18
WIDE = 1140
LEFT, TOP = 52, 6  # the room for the numbers of the axis, and above the highest bar
MAX_BARS, MAX_MARKS, MAX_MARK = 60, 12, 14
FEWEST, MAX_LABELS = 12, 6  # bars for which a histogram has room, labels that it shows


def histogram(kind: str, stats: Durations, measured: Sequence[tuple[float, float, int]]) -> Markup:
    """Draw a histogram of times; `kind` is wait or run. Bars cover growing ranges, to days.

    It shows what workers have measured: the begin, the end and the count of each bar. Where they
    have measured nothing, it shows what qless counts in whole seconds.
    """
    counts = label_bars(measured or merge_counters(stats.histogram))
    most = max((count for _, count in counts), default=0) or 1
    step, every = WIDTH / max(len(counts), FEWEST), math.ceil(len(counts) / MAX_LABELS)
    bars = Markup("").join(
        _bar(f"{label}: {formatting.number(count)}", kind, at * step + 1, step - 2, size, 1.5)
        for at, (label, count) in enumerate(counts)
        if (size := max(2.0, count / most * (HEIGHT - TOP)) if count else 0.0)
    )
    fine = Markup(' class="fine"')  # labels for which a phone has no room
    labels = Markup("").join(
        Markup('<text{} x="{:.1f}" y="{}">{}</text>').format(
            fine if at // every % 2 else "", at * step, HEIGHT + FOOT - 4, label
        )
        for at, (label, _) in enumerate(counts)
        if at % every == 0
    )
    jobs, mean = formatting.number(stats.count), format_duration(stats.mean)
    return _chart(f"{kind} of {jobs} jobs: mean {mean}", WIDTH, most, bars + labels)


def fortnight(days: Sequence[DayTotals]) -> Markup:
    """Draw how many jobs completed and failed on each of the last days."""
    most = max((each.completed + each.failures for each in days), default=0) or 1
    step = WIDE / max(1, len(days))
    bars = Markup("")
    for at, each in enumerate(days):
        bad, good = (
            getattr(each, what) / most * (HEIGHT - TOP) for what in ("failures", "completed")
        )
        completed, failed = (
            formatting.number(getattr(each, what)) for what in ("completed", "failures")
        )
        day = formatting.day(each.day)
        bars += Markup(
            '<g><title>{title}</title><rect class="run" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" '
            'height="{good:.1f}" rx="1.5"/><rect class="bad" x="{x:.1f}" y="{top:.1f}" '
            'width="{w:.1f}" height="{bad:.1f}" rx="1.5"/>'
            '<text x="{x:.1f}" y="{foot}">{label}</text></g>'
        ).format(
            title=f"{day}: {completed} completed, {failed} failed",
            x=at * step + 2,
            y=HEIGHT - good,
            w=step - 4,
            good=good,
            top=HEIGHT - good - bad,
            bad=bad,
            foot=HEIGHT + FOOT - 4,
            label=day[8:],
        )
    total = formatting.number(sum(each.completed for each in days))
    return _chart(f"{total} completed in the last {len(days)} days", WIDE, most, bars)


def over_time(
    values: Mapping[float, float],
    begin: float,
    end: float,
    step: float,
    label: str,
    *,
    kind: str = "run",
    marks: Iterable[Mark] = (),
    show: Callable[[float], str] = formatting.short,
) -> Markup:
    """Draw the values of periods, with their time on the x axis, and marks.

    At most 60 bars are drawn, each with the largest value of its periods; `values` has them by
    their start.
    """
    end = max(end, begin + step)  # the clock of Redis may be ahead
    together = step * math.ceil((end - begin) / step / MAX_BARS)
    highest: dict[float, float] = {}
    for start, value in values.items():
        first = start // together * together
        highest[first] = max(highest.get(first, 0.0), value)
    most, scale = _round_up(max(highest.values(), default=0)) or 1, WIDTH / (end - begin)
    bars = Markup("").join(
        _bar(
            f"{format_duration(end - first)} ago: {show(value)}",
            *(kind, left + 0.5, max(1.0, right - left - 1), size, 1),
        )
        for first, value in sorted(highest.items())
        if (right := min((first + together - begin) * scale, WIDTH))
        > (left := max((first - begin) * scale, 0.0))
        if (size := max(1.5, value / most * (HEIGHT - TOP)) if value else 0.0)
    )
    drawn = Markup("").join(
        Markup(
            '<g class="mark"><title>{text}, {ago} ago</title><line x1="{x:.1f}" y1="0" '
            'x2="{x:.1f}" y2="{h}"/><text x="{x:.1f}" y="-4" text-anchor="middle">{short}</text>'
            "</g>"
        ).format(
            text=mark.text,
            ago=format_duration(end - mark.at),
            x=(mark.at - begin) * scale,
            h=HEIGHT,
            short=mark.text if len(mark.text) <= MAX_MARK else mark.text[: MAX_MARK - 1] + "…",
        )
        for mark in [mark for mark in marks if begin <= mark.at <= end][:MAX_MARKS]
    )
    labels = Markup(
        '<text x="0" y="{y}">{first} ago</text><text x="{middle}" y="{y}" text-anchor="middle">'
        '{half} ago</text><text x="{w}" y="{y}" text-anchor="end">now</text>'
    ).format(
        y=HEIGHT + FOOT - 4,
        w=WIDTH,
        middle=WIDTH / 2,
        first=format_duration(end - begin),
        half=format_duration((end - begin) / 2),
    )
    return _chart(label, WIDTH, most, bars + drawn + labels, show)


def _bar(title: str, kind: str, x: float, width: float, size: float, radius: float) -> Markup:
    return Markup(
        '<g><title>{}</title><rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" '
        'rx="{}"/></g>'
    ).format(title, kind, x, HEIGHT - size, width, size, radius)


def _round_up(value: float) -> float:
    """Return the end of an axis: a round number, of which the half is one as well."""
    if value <= 0:
        return 0.0
    unit: float = 10.0 ** math.floor(math.log10(value))
    return next(unit * each for each in (1, 2, 3, 4, 5, 6, 8, 10) if unit * each >= value)


def _chart(
    label: str,
    width: int,
    most: float,
    bars: Markup,
    show: Callable[[float], str] = formatting.short,
) -> Markup:
    """Draw bars above an axis, with lines at the maximum, at half of it, and at 0."""
    lines = Markup("").join(
        Markup(
            '<line class="axis" x1="0" y1="{y:.1f}" x2="{w}" y2="{y:.1f}"/>'
            '<text class="y" x="-8" y="{text:.1f}">{value}</text>'
        ).format(y=y, w=width, text=y + 4, value=show(value))
        for value in ((most, most / 2) if most >= 2 else (most,))
        if (y := HEIGHT - value / most * (HEIGHT - TOP))
    )
    return Markup(
        '<svg class="{kind}" viewBox="-{left} 0 {whole} {h}" role="img" aria-label="{label}">'
        "{lines}"
        '<line class="axis" x1="0" y1="{y}" x2="{w}" y2="{y}"/>{bars}</svg>'
    ).format(
        left=LEFT,
        whole=width + LEFT,
        lines=lines,
        w=width,
        h=HEIGHT + FOOT,
        y=HEIGHT + 0.5,
        label=label,
        bars=bars,
        kind="chart long" if width == WIDE else "chart",
    )
