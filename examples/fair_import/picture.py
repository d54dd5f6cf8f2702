"""Draw the lag of each customer's rows, over the time of their start, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .jobs import Start

COLORS = ("#9aa5b1", "#d1495b", "#00798c", "#b07d00")
WIDTH, HEIGHT, LEFT, TOP = 330, 180, 50, 40  # of a panel, and its place
STEP = WIDTH + LEFT + 20


def draw(panels: Mapping[str, Sequence[Start]]) -> str:
    """Return the picture: a panel for each way, with a dot for each row."""
    every = [start for starts in panels.values() for start in starts]
    color = dict(zip(dict.fromkeys(start.customer for start in every), COLORS, strict=True))
    longest = max(max(start.at, start.lag) for start in every)
    size = f"{STEP * len(panels)} {TOP + HEIGHT + 70}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="sans-serif" '
        'font-size="12"><rect width="100%" height="100%" fill="#ffffff"/>'
    ]
    for number, (title, starts) in enumerate(panels.items()):
        parts.append(f'<g transform="translate({number * STEP + LEFT} {TOP})">')
        parts.append(f'<text y="-16" font-weight="bold">{title}</text>')
        parts.append(f'<path d="M0 0V{HEIGHT}H{WIDTH}" fill="none" stroke="#52606d"/>')
        parts.append(f'<text y="{HEIGHT + 32}">when a row started; height: for how long it had ')
        parts.append("waited</text>")
        for tick in range(0, int(longest) + 1, 2):
            along, up = tick / longest * WIDTH, HEIGHT - tick / longest * HEIGHT
            parts.append(f'<text x="{along:.0f}" y="{HEIGHT + 16}">{tick} s</text>')
            parts.append(f'<text x="-8" y="{up + 4:.0f}" text-anchor="end">{tick} s</text>')
        for start in starts:
            x, y = start.at / longest * WIDTH, HEIGHT - start.lag / longest * HEIGHT
            fill = color[start.customer]
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{fill}"/>')
        parts.append("</g>")
    for number, (customer, fill) in enumerate(color.items()):
        x, y = LEFT + 120 * number, TOP + HEIGHT + 58
        rows = sum(start.customer == customer for start in every) // len(panels)
        parts.append(f'<circle cx="{x}" cy="{y - 4}" r="5" fill="{fill}"/>')
        parts.append(f'<text x="{x + 10}" y="{y}">{customer}: {rows} rows</text>')
    return "\n".join([*parts, "</svg>", ""])
