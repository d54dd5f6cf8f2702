"""The report's colours, by day and by night. Charts are drawn once: their colours are names that
the page gives a value."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# What matplotlib is told, what the page calls it; by day, by night.
COLOURS: Final = {
    "#00a001": ("ink", "#1c2430", "#e8eaee"),
    "#00a002": ("muted", "#667085", "#97a1b2"),
    "#00a003": ("grid", "#e7eaef", "#2a313c"),
    "#00a004": ("wait", "#d9730d", "#f2a65a"),
    "#00a005": ("run", "#2f6fde", "#77a9ff"),
    "#00a006": ("done", "#12897b", "#4cc9b5"),
    "#00a007": ("fail", "#c8324a", "#ff7d8e"),
}
INK, MUTED, GRID, WAIT, RUN, DONE, FAIL = COLOURS
WIDE, HALF = 12.4, 6.0  # inches: text is of one size on the page
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9.5, "text.color": INK, "axes.labelcolor": MUTED,
    "xtick.color": MUTED, "ytick.color": MUTED, "axes.edgecolor": GRID, "axes.grid": True, "axes.grid.axis": "y", "grid.color": GRID,
    "grid.linewidth": 0.8, "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False, "axes.axisbelow": True,
    "xtick.major.size": 3, "ytick.major.size": 0, "xtick.major.width": 0.8, "legend.frameon": False, "svg.hashsalt": "aioqless",
    "lines.solid_capstyle": "round", "axes.formatter.useoffset": False, "text.parse_math": False,
}  # fmt: skip


class Drawn:
    """A chart's SVG, once it has been drawn."""

    svg = ""


@contextmanager
def chart(width: float, height: float, rows: int = 1, **more: Any) -> Iterator[tuple[Drawn, Any]]:
    """Axes to draw on, in the report's style, of a width WIDE or HALF; the SVG is there
    afterwards."""
    drawn = Drawn()
    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, **more)
        yield drawn, axes
        file = io.StringIO()
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Glyph", UserWarning
            )  # names may be in any script: the reader's fonts show them
            figure.savefig(
                file, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
            )
    drawn.svg = _themed(file.getvalue())


def css() -> str:
    """The colours for a page: by day, by night, and as the reader chooses."""
    day, night = (
        "".join(f"--{name}:{colours[index]};" for name, *colours in COLOURS.values())
        for index in (0, 1)
    )
    return f":root{{{day}}}@media(prefers-color-scheme:dark){{:root:not(.day){{{night}}}}}:root.night{{{night}}}"


def bare(axes: Axes) -> None:
    """Without lines and ticks of its own."""
    axes.grid(False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _themed(svg: str) -> str:
    """The SVG element alone, as wide as its place, its colours by name, and the text in the page's
    font."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(
        r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', r'<svg viewBox="\1" role="img">', svg, count=1
    )
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]+", r"font-size: \1px", svg)
    for hexed, (name, *_) in COLOURS.items():
        svg = svg.replace(hexed, f"var(--{name})")
    return svg
