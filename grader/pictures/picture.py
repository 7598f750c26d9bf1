"""Define Picture, which a notebook shows with an alt text and which is drawn when it is first shown."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

# Okabe and Ito's colours, which people with any colour blindness can tell apart, on the picture's own background, so
# that it is readable on light and dark pages.
BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, YELLOW = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#56B4E9",
    "#CC79A7",
    "#F0E442",
)
INK, SOFT, LINE, FAINT, CELL, PANEL = "#1d1d1f", "#55555c", "#a9a69d", "#dedbd2", "#ebe8e0", "#faf9f5"
DARK, MINT = "#1c1c1e", "#bfe3d6"  # text on a coloured cell, and a pale cell: the same in every theme
# JupyterLab's colours, which follow its theme, for those above that are no data; PANEL takes the page's ground.
THEMED = {
    INK: "--jp-content-font-color1",
    SOFT: "--jp-content-font-color2",
    LINE: "--jp-border-color1",
    FAINT: "--jp-border-color2",
    CELL: "--jp-border-color3",
    PANEL: "--jp-layout-color0",
}
WIDTH = 8.0  # inches: 768 pixels in a notebook
DPI = 150  # of a PNG

STYLE: dict[Any, Any] = {
    "figure.facecolor": PANEL, "savefig.facecolor": PANEL, "axes.facecolor": PANEL, "axes.edgecolor": LINE,
    "axes.labelcolor": INK, "text.color": INK,
    "xtick.color": SOFT, "ytick.color": SOFT, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.monospace": ["DejaVu Sans Mono", "monospace"],
    "font.size": 9, "axes.labelsize": 9, "axes.titlesize": 9.5, "xtick.labelsize": 8.5, "ytick.labelsize": 8.5,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8, "axes.titlelocation": "left",
    "xtick.major.size": 3, "ytick.major.size": 3, "lines.linewidth": 1.4, "patch.linewidth": 0.8,
    "svg.fonttype": "none", "svg.hashsalt": "gpu-kernel-course", "path.simplify": True, "text.parse_math": False,
}  # fmt: skip


class Picture:
    """A drawing with an alt text: `name` is its kind, `alt` states in one or two sentences what it shows.

    JupyterLab gets SVG in its theme's colours; nbval gets PNG, as does everything if GRADER_PICTURES=png. svg() and
    png() return these formats, on a light ground; save(path) writes the one that the path's suffix names.
    """

    def __init__(self, name: str, alt: str, draw: Callable):
        """Keep the drawing function. draw: returns the matplotlib figure; called when the picture is first shown."""
        self.name, self.alt, self._draw = name, alt, draw

    @cached_property
    def figure(self):
        """The matplotlib figure, which pyplot does not manage."""
        with style():
            return self._draw()

    @cached_property
    def _svg(self) -> str:
        out = io.StringIO()
        with style():
            self.figure.savefig(
                out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
            )
        text = out.getvalue()
        text = text[text.index("<svg") :]
        text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.S)
        head = text.index(">")
        words = f"\n <title>{escape(self.name)}</title>\n <desc>{escape(self.alt)}</desc>"
        return f'{text[:head]} role="img" aria-label={quoteattr(self.alt)}>{words}{text[head + 1 :]}'

    def svg(self) -> str:
        """Return the picture as SVG, the same bytes each time."""
        return self._svg

    def html(self) -> str:
        """Return svg() as HTML that takes the page's ground and its theme's colours in JupyterLab."""
        drawn = re.sub(
            r"(?<=: )#[0-9a-f]{6}\b",
            lambda colour: f"var({THEMED[colour[0]]}, {colour[0]})" if colour[0] in THEMED else colour[0],
            self._svg,
        )
        return f'<div style="margin:.8em 0;max-width:100%;overflow-x:auto">{drawn}</div>'

    def png(self, dpi: int = DPI) -> bytes:
        """Return the picture as PNG."""
        out = io.BytesIO()
        with style():
            self.figure.savefig(out, format="png", dpi=dpi, metadata={"Software": None})
        return out.getvalue()

    def save(self, path: str | Path) -> Path:
        """Write the picture as .svg or .png and return the path. Raises ValueError for another suffix."""
        path = Path(path)
        if path.suffix not in (".svg", ".png"):
            raise ValueError(f"a picture is saved as .svg or .png, not as {path.name}")
        path.write_bytes(self.svg().encode() if path.suffix == ".svg" else self.png())
        return path

    def _repr_mimebundle_(self, include=None, exclude=None):
        words = {"text/plain": self.alt}
        if "NBVAL" in os.environ or os.environ.get("GRADER_PICTURES") == "png":
            image = base64.b64encode(self.png()).decode()
            return words | {"image/png": image}, {"image/png": {"width": round(WIDTH * 96), "alt": self.alt}}
        return words | {"text/html": self.html()}

    def __repr__(self) -> str:
        return f"Picture({self.name!r}: {self.alt})"


@contextlib.contextmanager
def style():
    """Apply matplotlib's settings for our pictures. Raises ImportError if matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError(
            "Pictures need matplotlib, which is not installed: install it with `pip install matplotlib`."
        ) from None
    with matplotlib.rc_context(STYLE):
        yield


# ---- shared by all pictures ----


def new_figure(height: float, title: str, subtitle: str = "", foot: str = ""):
    """Return a figure with a title, in a smaller font if it is long, a subtitle below it, and a line at the foot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    title = clipped(title, 104)
    figure.text(
        0.16 / WIDTH, 1 - 0.14 / height, title, fontsize=min(11, 11 * 76 / len(title)), fontweight="bold", va="top"
    )
    figure.text(0.16 / WIDTH, 1 - 0.37 / height, clipped(subtitle, 100), fontsize=9, color=SOFT, va="top")
    figure.text(0.16 / WIDTH, 0.1 / height, clipped(foot, 112), fontsize=8.5, color=SOFT, va="bottom")
    return figure


def axes(figure, left: float, top: float, width: float, height: float, bare: bool = True):
    """Return axes, placed in inches from the figure's upper left corner. bare: without ticks and frame."""
    wide, tall = figure.get_size_inches()
    ax = figure.add_axes((left / wide, 1 - (top + height) / tall, width / wide, height / tall))
    if bare:
        ax.set_axis_off()
    return ax


def rectangles(ax, boxes, gid: str = "", **look):
    """Draw boxes (x, y, width, height) as one patch and return it. gid: the id of its group in the SVG."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Line

    if not len(boxes):
        return None
    points, codes = [], []
    for x, y, w, h in boxes:
        points += [(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)]
        codes += [Line.MOVETO, Line.LINETO, Line.LINETO, Line.LINETO, Line.CLOSEPOLY]
    patch = PathPatch(Line(points, codes), **{"linewidth": 0, **look})
    if gid:
        patch.set_gid(gid)
    ax.add_patch(patch)
    return patch


def clipped(text: str, limit: int) -> str:
    """Return the text on one line, cut to the limit."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def seconds(value: float) -> str:
    """Return a time with a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}" if value / size < 999.5 else f"{value / size:,.0f} {unit}"
    return f"{value / 1e-9:.3g} ns"


def bytes_text(value: float) -> str:
    """Return a number of bytes with a suitable decimal prefix."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}" if value / size < 999.5 else f"{value / size:,.0f} {unit}"
    return f"{value:,.0f} bytes"


def count(n: int, noun: str) -> str:
    """Return "1 lane" or "2 lanes"."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
