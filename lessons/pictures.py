"""The lessons' pictures: one function each, returning a small PNG with alt text."""

import io

import matplotlib.pyplot as plt
from IPython.display import Image
from matplotlib.patches import Rectangle

GREY, BLUE, ORANGE = "#e8e8e8", "#9ecae1", "#fdae6b"


def _png(figure, alt: str) -> Image:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=80, bbox_inches="tight", facecolor="white")
    plt.close(figure)
    return Image(buffer.getvalue(), alt=alt)


def _axes(columns: int, width: float, height: float):
    figure, axes = plt.subplots(1, columns, figsize=(width, height), squeeze=False)
    for ax in axes[0]:
        ax.set_aspect("equal")
        ax.axis("off")
    return figure, axes[0]


def _grid(ax, rows: int, columns: int, text=None, colour=None):
    """Draw rows x columns cells; text(row, column) and colour(row, column) fill them."""
    for row in range(rows):
        for column in range(columns):
            face = (colour and colour(row, column)) or GREY
            ax.add_patch(Rectangle((column, row), 1, 1, facecolor=face, edgecolor="white", lw=2))
            if text:
                ax.text(column + 0.5, row + 0.5, text(row, column), ha="center", va="center", fontsize=8)
    ax.set_xlim(0, columns)
    ax.set_ylim(rows, 0)


def sliding_window() -> Image:
    """One thread of a 3x3 convolution over a 5x6 image: the patch that it reads, the pixel that it writes."""
    figure, (image, out) = _axes(2, 7, 3)
    row, column = 1, 2
    _grid(image, 5, 6, colour=lambda r, c: BLUE if row <= r < row + 3 and column <= c < column + 3 else None)
    image.set_title("image, 5 x 6: the patch that is read", fontsize=10)
    _grid(out, 3, 4, lambda r, c: str(4 * r + c), lambda r, c: ORANGE if (r, c) == (row, column) else None)
    out.set_title("result, 3 x 4: the number of its thread", fontsize=10)
    return _png(
        figure,
        "Left: a 5 by 6 image with the 3 by 3 patch from row 1, column 2 coloured. "
        "Right: the 3 by 4 result, each cell holding the number of the thread that computes it, 0 to 11; "
        "cell 6, in row 1 and column 2, is coloured: thread 6 reads the coloured patch.",
    )


def patches_as_columns() -> Image:
    """im2col of a 3x4 image for a 2x2 window: each patch becomes one column."""
    figure, (image, columns) = _axes(2, 7.5, 3)
    _grid(
        image, 3, 4,
        lambda r, c: str(4 * r + c),
        lambda r, c: ORANGE if r in (1, 2) and c in (1, 2) else None,
    )
    image.set_title("image, 3 x 4", fontsize=10)
    # Row k of the result is window offset (k // 2, k % 2); column p is patch (p // 3, p % 3).
    _grid(
        columns, 4, 6,
        lambda k, p: str(4 * (p // 3 + k // 2) + p % 3 + k % 2),
        lambda k, p: ORANGE if p == 4 else None,
    )
    columns.set_title("columns, 4 x 6: one column a patch", fontsize=10)
    return _png(
        figure,
        "Left: a 3 by 4 image whose pixels are numbered 0 to 11, with the 2 by 2 patch 5, 6, 9, 10 coloured. "
        "Right: a matrix of 4 rows and 6 columns; column 4 is coloured and holds 5, 6, 9, 10 from top to bottom. "
        "Every column holds one patch of the image.",
    )


def one_block_a_group() -> Image:
    """GroupNorm with 6 channels in 3 groups: what shares a mean, and which block computes it."""
    figure, (tensor,) = _axes(1, 7, 2.4)
    colours = (BLUE, ORANGE, "#a1d99b")
    _grid(
        tensor, 2, 6,
        lambda n, c: f"n={n}\nc={c}\nblock {3 * n + c // 2}",
        lambda n, c: colours[c // 2],
    )
    tensor.set_title("2 images x 6 channels, 3 groups: each cell is a whole height x width plane", fontsize=10)
    return _png(
        figure,
        "A table of 2 images by 6 channels. Channels 0 and 1 share a colour, as do 2 and 3, and 4 and 5. "
        "Image 0's three groups belong to blocks 0, 1 and 2; image 1's to blocks 3, 4 and 5.",
    )


def memory_traffic() -> Image:
    """How often a tensor crosses between memory and processor: three kernels against one."""
    figure, ax = plt.subplots(figsize=(6.5, 1.8))
    steps = ["+ bias", "x scale", "sigmoid"]
    for i, step in enumerate(steps):
        ax.barh(1, 1, left=2 * i, color=BLUE, edgecolor="white")
        ax.barh(1, 1, left=2 * i + 1, color=ORANGE, edgecolor="white")
        ax.text(2 * i + 0.5, 1, "read", ha="center", va="center", fontsize=8)
        ax.text(2 * i + 1.5, 1, "write", ha="center", va="center", fontsize=8)
        ax.text(2 * i + 1, 1.55, step, ha="center", fontsize=8)
    for left, word, colour in ((0, "read", BLUE), (1, "write", ORANGE)):
        ax.barh(0, 1, left=left, color=colour, edgecolor="white")
        ax.text(left + 0.5, 0, word, ha="center", va="center", fontsize=8)
    ax.set_yticks([0, 1], ["one kernel", "three kernels"])
    ax.set_xlabel("times that the whole tensor crosses the memory bus")
    ax.set_ylim(-0.5, 1.9)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    return _png(
        figure,
        "Two bars. Three kernels: read and write for adding the bias, again for the scale, again for the sigmoid, "
        "six crossings in all. One kernel: one read and one write.",
    )


def where_exp_overflows() -> Image:
    """exp(x) in float32 leaves the range of float32 a little above x = 88."""
    import torch

    x = torch.linspace(60, 100, 200)
    figure, ax = plt.subplots(figsize=(5.5, 2.4))
    finite = torch.exp(x).isfinite()
    ax.semilogy(x[finite], torch.exp(x[finite]), color="#3182bd")
    ax.axvspan(float(x[~finite][0]), 100, color=ORANGE, alpha=0.5)
    ax.text(94.4, 1e30, "inf", ha="center")
    ax.set_xlabel("x")
    ax.set_ylabel("exp(x), float32")
    return _png(
        figure,
        "A curve of exp(x) on a logarithmic axis for x from 60 to 100. "
        "It is a straight line up to x of about 88.7, where float32 ends; to the right the result is infinity.",
    )
