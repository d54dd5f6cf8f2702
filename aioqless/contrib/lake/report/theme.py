"""The report's colors in light and dark mode.

A chart is drawn once. Its colors are names, which the page's style sheet gives values.
"""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Matplotlib's color, the page's name for it, its value in light and in dark mode.
COLORS: Final = {
    "#00a001": ("ink", "#1c2430", "#e8eaee"),
    "#00a002": ("muted", "#5d6777", "#9aa4b5"),
    "#00a003": ("grid", "#e7eaef", "#2a313c"),
    "#00a004": ("wait", "#d9730d", "#f2a65a"),
    "#00a005": ("run", "#2f6fde", "#77a9ff"),
    "#00a006": ("done", "#12897b", "#4cc9b5"),
    "#00a007": ("fail", "#c8324a", "#ff7d8e"),
    "#00a011": ("group1", "#c8324a", "#ff7d8e"),
    "#00a012": ("group2", "#e0a100", "#ffd166"),
    "#00a013": ("group3", "#6b4fd8", "#a996ff"),
    "#00a014": ("group4", "#0f8aa8", "#5fd0ea"),
    "#00a015": ("group5", "#5f8a1d", "#a9d65c"),
}
INK, MUTED, GRID, WAIT, RUN, DONE, FAIL, *GROUPS = COLORS
# Widths of charts in inches. Text has the same size on the page in each of them.
WIDE: Final = 12.4
HALF: Final = 6.0
NARROW: Final = 3.9  # for phones
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.edgecolor": GRID,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "xtick.major.width": 0.8,
    "legend.frameon": False,
    "svg.hashsalt": "aioqless",
    "lines.solid_capstyle": "round",
    "axes.formatter.useoffset": False,
    "text.parse_math": False,
}


class Drawing:
    """A chart and, after it was drawn, its SVG."""

    svg = ""


@contextmanager
def draw_chart(
    title: str, width: float, height: float, rows: int = 1, **options: Any
) -> Iterator[tuple[Drawing, Any]]:
    """Yield axes in the report's style, and a drawing that has the SVG afterwards.

    Args:
        title: What the chart shows, for readers who can't see it.
        width: In inches: WIDE, HALF or NARROW.
        height: In inches.
        rows: The number of axes, one below the other.
        options: Further arguments of `Figure.subplots`.
    """
    drawing = Drawing()
    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, **options)
        yield drawing, axes
        file = io.StringIO()
        with warnings.catch_warnings():
            # Names may be in any script; the reader's fonts have what matplotlib's lack.
            warnings.filterwarnings("ignore", "Glyph", UserWarning)
            figure.savefig(
                file, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
            )
    drawing.svg = _embed(file.getvalue(), title)


def css() -> str:
    """Return the colors for the page: light, dark, and as the reader chooses."""
    light, dark = (
        "".join(f"--{name}:{values[index]};" for name, *values in COLORS.values())
        for index in (0, 1)
    )
    return (
        f":root{{{light}}}@media(prefers-color-scheme:dark){{:root:not(.light){{{dark}}}}}"
        f":root.dark{{{dark}}}"
    )


def remove_lines(axes: Axes) -> None:
    """Remove the grid, ticks and borders of axes."""
    axes.grid(False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _embed(svg: str, title: str) -> str:
    """Return the SVG element as wide as its place, with named colors and the page's font."""
    svg = svg[svg.index("<svg") :]
    label = html.escape(title)
    svg = re.sub(
        r'<svg [^>]*?viewBox="([^"]+)"[^>]*>',
        lambda match: f'<svg viewBox="{match[1]}" role="img" aria-label="{label}">',
        svg,
        count=1,
    )
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]+", r"font-size: \1px", svg)
    for color, (name, *_) in COLORS.items():
        svg = svg.replace(color, f"var(--{name})")
    return svg
