"""Draw the lessons' pictures: each public function returns one small PNG with alt text."""

# Stays whole: a lesson imports each picture by its function's name, and no two share a subject.

import io
import json
from pathlib import Path

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
    """Draw what one thread of a 3x3 convolution does over a 5x6 image: the patch it reads and the pixel it writes."""
    figure, (image, out) = _axes(2, 7, 3)
    row, column = 1, 2
    _grid(image, 5, 6, colour=lambda r, c: BLUE if row <= r < row + 3 and column <= c < column + 3 else None)
    image.set_title("image, 5 x 6: the patch that thread 6 reads", fontsize=10)
    _grid(out, 3, 4, lambda r, c: str(4 * r + c), lambda r, c: ORANGE if (r, c) == (row, column) else None)
    out.set_title("result, 3 x 4: each pixel's thread", fontsize=10)
    return _png(
        figure,
        "Left: a 5 by 6 image with the 3 by 3 patch from row 1, column 2 coloured. "
        "Right: the 3 by 4 result, in which each cell shows the number of the thread that computes it, 0 to 11. "
        "Cell 6, in row 1 and column 2, is coloured: thread 6 reads the coloured patch.",
    )


def grid_to_lanes() -> Image:
    """Draw the levels of a launch of 63 blocks of 256 threads: grid, block, warp, lane."""
    rows = (
        ("the grid: 63 blocks", ["block 0", "block 1", "block 2", "block 3", "…", "block 62"], 1),
        ("block 1: 256 threads, 8 warps", [f"warp {w}" for w in range(8)], 2),
        ("warp 2: 32 threads", [str(lane) for lane in range(32)], 6),
    )
    figure, ax = plt.subplots(figsize=(8.6, 2.7))
    inside = None  # left and right end of the cell that the next row enlarges
    for row, (title, texts, chosen) in enumerate(rows):
        top, width = 1.6 * row, 32 / len(texts)
        if inside is not None:
            for near, far in zip(inside, (0, 32)):
                ax.plot([near, far], [top - 0.9, top], color="grey", lw=0.8, ls=(0, (2, 2)))
        ax.text(0, top - 0.1, title, ha="left", va="bottom", fontsize=9, fontweight="bold")
        for i, text in enumerate(texts):
            face = ORANGE if i == chosen else GREY if text == "…" else BLUE
            ax.add_patch(Rectangle((i * width, top), width, 0.7, facecolor=face, edgecolor="white", lw=1.5))
            ax.text((i + 0.5) * width, top + 0.35, text, ha="center", va="center", fontsize=7.5)
        inside = (chosen * width, (chosen + 1) * width)
    ax.text(6.5, 4.0, "lane 6: thread 2 · 32 + 6 = 70 of block 1", ha="center", va="top", fontsize=8)
    ax.set_xlim(-0.2, 32.2)
    ax.set_ylim(4.5, -0.6)
    ax.axis("off")
    return _in_few_colours(
        _png(
            figure,
            "Three rows, each an enlarged cell of the row above. The grid has 63 blocks, 0 to 62. Block 1 has 256 "
            "threads in 8 warps, 0 to 7. Warp 2 has 32 lanes, 0 to 31. Lane 6 is thread 70 of the block.",
        )
    )


def patches_as_columns() -> Image:
    """Draw im2col of a 3x4 image with a 2x2 window: each patch becomes one column."""
    figure, (image, columns) = _axes(2, 7.5, 3)
    _grid(
        image,
        3,
        4,
        lambda r, c: str(4 * r + c),
        lambda r, c: ORANGE if r in (1, 2) and c in (1, 2) else None,
    )
    image.set_title("image, 3 x 4", fontsize=10)
    # Row k of the result is window offset (k // 2, k % 2); column p is patch (p // 3, p % 3).
    _grid(
        columns,
        4,
        6,
        lambda k, p: str(4 * (p // 3 + k // 2) + p % 3 + k % 2),
        lambda k, p: ORANGE if p == 4 else None,
    )
    columns.set_title("columns, 4 x 6: one column per patch", fontsize=10)
    return _in_few_colours(_png(
        figure,
        "Left: a 3 by 4 image whose pixels are numbered 0 to 11, with the 2 by 2 patch 5, 6, 9, 10 coloured. "
        "Right: a matrix of 4 rows and 6 columns; column 4 is coloured and contains 5, 6, 9, 10 from top to bottom. "
        "Every column contains one patch of the image.",
    ))  # fmt: skip


def one_block_per_group() -> Image:
    """Draw GroupNorm with 6 channels in 3 groups: which channels share a mean, and which block computes it."""
    figure, (tensor,) = _axes(1, 7, 2.4)
    colours = (BLUE, ORANGE, "#a1d99b")
    _grid(
        tensor,
        2,
        6,
        lambda n, c: f"n={n}\nc={c}\nblock {3 * n + c // 2}",
        lambda n, c: colours[c // 2],
    )
    tensor.set_title("2 images x 6 channels, 3 groups: each cell is a whole height x width plane", fontsize=10)
    return _in_few_colours(
        _png(
            figure,
            "A table of 2 images by 6 channels. Channels 0 and 1 share a colour, as do 2 and 3, and 4 and 5. "
            "Blocks 0, 1 and 2 compute image 0's three groups; blocks 3, 4 and 5 compute image 1's.",
        )
    )


def memory_traffic() -> Image:
    """Draw how often a tensor crosses the memory bus: three kernels compared to one."""
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
    ax.set_xlabel("how often the whole tensor crosses the memory bus")
    ax.set_ylim(-0.5, 1.9)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    return _png(
        figure,
        "Two bars. Three kernels: a read and a write to add the bias, again for the scale, again for the sigmoid; "
        "the tensor crosses the bus six times. One kernel: one read and one write.",
    )


def where_exp_overflows() -> Image:
    """Draw exp(x) in float32, which leaves the range of float32 a little above x = 88."""
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
        "A curve of exp(x) on a logarithmic axis for x from 60 to 100. It is a straight line up to about x = 88.7, "
        "where the range of float32 ends. To the right the result is infinity.",
    )


def two_orders() -> Image:
    """Draw two warps that share an element, in the two orders in which a GPU may run them."""
    figure, axes = plt.subplots(2, 1, figsize=(7, 2.6), sharex=True)
    orders = (("right by luck", (0, 2.2)), ("wrong", (2.2, 0)))
    for ax, (title, (write, read)) in zip(axes, orders):
        for y, word, left, colour in ((1, "warp 0 writes s[0]", write, BLUE), (0, "warp 1 reads s[0]", read, ORANGE)):
            ax.barh(y, 1.9, left=left, color=colour, edgecolor="white")
            ax.text(left + 0.95, y, word, ha="center", va="center", fontsize=9)
        ax.set_yticks([0, 1], ["warp 1", "warp 0"])
        ax.set_title(title, fontsize=9, loc="right")
        ax.set_xlim(0, 4.3)
        ax.set_xticks([])
        for side in ("top", "right", "bottom", "left"):
            ax.spines[side].set_visible(False)
    axes[1].set_xlabel("time →")
    figure.tight_layout()
    return _png(
        figure,
        "Two time lines of the same two warps. Above, warp 0 writes s[0] first and warp 1 reads it afterwards: right "
        "by luck. Below, warp 1 reads s[0] first and warp 0 writes it afterwards: wrong. Nothing makes the one wait "
        "for the other.",
    )


def rows_in_sixteens() -> Image:
    """Draw rows of 6 floats in memory with a mark every 16 bytes: where a float4 may start."""
    figure, (ax,) = _axes(1, 8, 1.4)
    colours = (BLUE, ORANGE, "#a1d99b")
    _grid(ax, 1, 18, lambda r, c: f"{c // 6},{c % 6}", lambda r, c: colours[c // 6])
    for place in range(0, 19, 4):
        ax.plot([place, place], [-0.25, 1.25], color="black", lw=2, clip_on=False)
    for row, word in enumerate(("row 0: aligned", "row 1: misaligned", "row 2: aligned")):
        ax.text(6 * row + 3, 1.75, word, ha="center", fontsize=9)
    return _png(
        figure,
        "Eighteen floats side by side, three rows of 6, with a mark every 4 floats, where 16 bytes begin. "
        "Row 0 begins at a mark and row 2 at another; row 1 begins in the middle between two marks.",
    )


def where_a_clock_stops() -> Image:
    """Draw a launch on host and GPU, and what a clock measures that stops before or after a wait."""
    figure, ax = plt.subplots(figsize=(7, 2.3))
    ax.barh(1, 0.5, left=0, color=BLUE)
    ax.text(0.25, 1, "launch", ha="center", va="center", fontsize=8)
    ax.barh(1, 4.5, left=0.5, color=GREY)
    ax.text(2.75, 1, "waits", ha="center", va="center", fontsize=8)
    ax.barh(0, 4.6, left=0.4, color=ORANGE)
    ax.text(2.7, 0, "the kernel runs", ha="center", va="center", fontsize=8)
    for x, word in ((0, "start"), (0.55, "stop without a wait"), (5, "stop after a wait")):
        ax.plot([x, x], [-0.5, 1.65], color="black", lw=1)
        ax.text(x, 1.75, word, ha="left" if x < 5 else "right", fontsize=8)
    ax.set_yticks([0, 1], ["GPU", "host"])
    ax.set_xticks([])
    ax.set_xlabel("time →")
    ax.set_ylim(-0.5, 2.1)
    for side in ("top", "right", "bottom", "left"):
        ax.spines[side].set_visible(False)
    return _png(
        figure,
        "A time line of host and GPU. The host launches, which is short, and then waits; the GPU starts a little "
        "later and works long. A clock stopped right after the launch shows a ninth of the time; stopped after the "
        "wait it shows all of it.",
    )


def roofline() -> Image:
    """Draw a roofline of an H200: operations per second against operations per byte of DRAM, for benchmarks/micro."""
    import json
    from pathlib import Path

    data = json.loads((Path(__file__).resolve().parent.parent / "benchmarks" / "data" / "ncu.json").read_text())[
        "programs"
    ]
    figure, ax = plt.subplots(figsize=(6.5, 3.4))
    # the H200's datasheet: bytes per second; multiply-adds of all lanes
    memory, arithmetic = 4.8e12, 132 * 128 * 2 * 1.98e9
    intensity = [0.1, arithmetic / memory, 2000]
    ax.loglog(intensity, [min(memory * x, arithmetic) / 1e12 for x in intensity], color="black")
    shown = (
        ("elementwise", "saxpy"),
        ("elementwise", "sigmoid"),
        ("rows", "layer normalisation"),
        ("matmul", "naive"),
        ("matmul", "naive, warps along columns"),
        ("matmul", "4 x 4 a thread"),
    )
    for program, label in shown:
        launch = next(row for row in data[program]["large"] if row["label"] == label)
        operations = launch.get("thread_fadd", 0) + launch.get("thread_fmul", 0) + 2 * launch.get("thread_ffma", 0)
        x = operations / (launch["dram_read_bytes"] + launch["dram_write_bytes"])
        y = operations / launch["nanoseconds"] / 1e3
        ax.plot(x, y, "o", color="#e6550d")
        right = x > 30
        ax.annotate(
            label,
            (x, y),
            xytext=(-6 if right else 6, -3),
            textcoords="offset points",
            fontsize=8,
            ha="right" if right else "left",
        )
    ax.set_xlabel("fp32 operations for each byte of DRAM")
    ax.set_ylabel("10¹² operations per second")
    ax.set_xlim(0.1, 2000)
    return _png(
        figure,
        "A roofline of an H200 on logarithmic axes: a line that rises with the operations for each byte until about "
        "14, and is flat from there. The dots of saxpy and layer normalisation lie just below the rising part, "
        "sigmoid a little lower; three matrix products lie under the flat part at about 375 operations for each byte: "
        "4 x 4 a thread below it by a factor of four, naive of twelve, along columns of seventy.",
    )


def windows_of_four() -> Image:
    """Draw max pooling of a 10x10 image with 4x4 windows: what each thread reads, and what belongs to no window."""
    figure, (image, out) = _axes(2, 7, 3.3)
    colours = ((BLUE, ORANGE), ("#a1d99b", "#bcbddc"))
    inside = lambda r, c: r < 8 and c < 8  # noqa: E731
    _grid(
        image,
        10,
        10,
        lambda r, c: str(2 * (r // 4) + c // 4) if inside(r, c) else "",
        lambda r, c: colours[r // 4][c // 4] if inside(r, c) else None,
    )
    image.set_title("image, 10 x 10: who reads which pixel", fontsize=10)
    _grid(out, 2, 2, lambda r, c: str(2 * r + c), lambda r, c: colours[r][c])
    out.set_title("result, 2 x 2: the number of its thread", fontsize=10)
    return _png(
        figure,
        "Left: a 10 by 10 image cut into four windows of 4 by 4 pixels, each with the number of the thread that reads "
        "it, 0 to 3. The last two rows and the last two columns are grey: they belong to no window. Right: the 2 by 2 "
        "result, each cell in the colour of its window, with the same numbers.",
    )


def pooling_traffic() -> Image:
    """Draw the bytes that scale, max pooling by 4 x 4 and clamp move: three kernels compared to one."""
    figure, ax = plt.subplots(figsize=(7, 1.9))
    three = (("scale", 1.0, 1.0), ("pool", 0.984, 0.06), ("clamp", 0.06, 0.06))  # read, written, in sizes of x
    left = 0.0
    for step, read, written in three:
        ax.barh(1, read, left=left, color=BLUE, edgecolor="white")
        ax.barh(1, written, left=left + read, color=ORANGE, edgecolor="white")
        ax.text(left + (read + written) / 2, 1.55, step, ha="center", fontsize=8)
        left += read + written + 0.02
    ax.text(0.5, 1, "read x", ha="center", va="center", fontsize=8)
    ax.text(1.5, 1, "write x · scale", ha="center", va="center", fontsize=8)
    ax.text(2.51, 1, "read x · scale", ha="center", va="center", fontsize=8)
    ax.barh(0, 0.984, left=0, color=BLUE, edgecolor="white")
    ax.barh(0, 0.06, left=0.984, color=ORANGE, edgecolor="white")
    ax.text(0.5, 0, "read x", ha="center", va="center", fontsize=8)
    ax.text(1.08, 0, "write y", va="center", fontsize=8)
    ax.set_yticks([0, 1], ["one kernel", "three kernels"])
    ax.set_xlabel("bytes, in sizes of x")
    ax.set_ylim(-0.5, 1.9)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    return _png(
        figure,
        "Two bars of bytes, reading blue and writing orange. Three kernels: reading x, writing x times scale, reading "
        "it again for the pooling, each as long as x, and then four short pieces of a sixteenth. One kernel: reading "
        "x and writing y, one long piece and one short.",
    )


def fragment_product() -> Image:
    """Draw one step of a tensor core, a 16x8 tile times an 8x16 tile, with the lanes that hold the result's first rows
    on an H200.
    """
    figure, ax = plt.subplots(figsize=(9.4, 7))
    ax.set_aspect("equal")
    ax.axis("off")

    def block(x: int, y: int, rows: int, columns: int, face: str, text=None):
        for r in range(rows):
            for c in range(columns):
                ax.add_patch(Rectangle((x + c, y + r), 1, 1, facecolor=face, edgecolor="white", lw=1))
                if text:
                    ax.text(x + c + 0.5, y + r + 0.5, text(r, c), ha="center", va="center", fontsize=8)

    block(0, 9, 16, 8, BLUE)
    block(9, 0, 8, 16, BLUE)
    block(9, 9, 16, 16, ORANGE, lambda r, c: str(4 * r + c % 8 // 2) if r < 3 else "")
    ax.text(4, 26, "matrix_a, 16 x 8", ha="center", fontsize=9)
    ax.text(17, -0.6, "matrix_b, 8 x 16", ha="center", fontsize=9)
    ax.text(17, 26, "accumulator, 16 x 16", ha="center", fontsize=9)
    ax.set_xlim(-0.5, 25.5)
    ax.set_ylim(26.5, -1.5)
    return _png(
        figure,
        "Lower left: a blue piece of 16 rows and 8 columns, matrix_a. Above right: a blue piece of 8 rows and 16 "
        "columns, matrix_b. Where its rows and its columns cross: the orange accumulator, 16 by 16. Its first row "
        "holds the numbers of lanes 0, 0, 1, 1, 2, 2, 3, 3 and the same again, the second row lanes 4 to 7 in the "
        "same way, the third lanes 8 to 11.",
    )


def bits_of_floats() -> Image:
    """Draw sign, exponent and mantissa of float32, TF32, bfloat16 and half."""
    figure, ax = plt.subplots(figsize=(7.5, 2.2))
    formats = (("float32", 8, 23), ("TF32", 8, 10), ("bfloat16", 8, 7), ("half", 5, 10))
    for row, (_, exponent, mantissa) in enumerate(formats):
        start = 8 - exponent
        for width, left, face, word in (
            (1, start, GREY, ""),
            (exponent, start + 1, ORANGE, exponent),
            (mantissa, 9, BLUE, mantissa),
        ):
            for bit in range(width):
                ax.add_patch(Rectangle((left + bit, row), 1, 0.8, facecolor=face, edgecolor="white", lw=1))
            ax.text(left + width / 2, row + 0.4, str(word), ha="center", va="center", fontsize=9)
        ax.text(-0.5, row + 0.4, formats[row][0], ha="right", va="center", fontsize=9)
    ax.text(5, -0.25, "exponent", ha="center", fontsize=9)
    ax.text(14, -0.25, "mantissa", ha="center", fontsize=9)
    ax.set_xlim(-5, 33)
    ax.set_ylim(4, -0.7)
    ax.axis("off")
    return _png(
        figure,
        "Four rows of bits: sign, exponent, mantissa. float32: 1, 8, 23. TF32: 1, 8, 10. bfloat16: 1, 8, 7. half: 1, "
        "5, 10. The first three have exponents of the same length; TF32 and half have mantissas of the same length.",
    )


def forward_and_backward() -> Image:
    """Draw one operator in a model: what goes forward, what comes back, and what is saved in between."""
    figure, ax = plt.subplots(figsize=(6.6, 2.2))
    for left, word, face in (
        (0, "x, bias, scale", GREY),
        (3.2, "forward\nkernels", BLUE),
        (6.4, "y", GREY),
        (8.6, "rest of\nthe model", GREY),
        (10.8, "loss", GREY),
    ):
        width = 2.2 if left < 6 else 1.6
        ax.add_patch(Rectangle((left, 2.4), width, 1, facecolor=face, edgecolor="black", lw=0.8))
        ax.text(left + width / 2, 2.9, word, ha="center", va="center", fontsize=8)
    for left, word, face in (
        (0, "gx, gbias,\ngscale", GREY),
        (3.2, "backward\nkernels", ORANGE),
        (6.4, "gy", GREY),
        (8.6, "its\nbackward", GREY),
        (10.8, "1", GREY),
    ):
        width = 2.2 if left < 6 else 1.6
        ax.add_patch(Rectangle((left, 0), width, 1, facecolor=face, edgecolor="black", lw=0.8))
        ax.text(left + width / 2, 0.5, word, ha="center", va="center", fontsize=8)
    for start, end in ((2.2, 3.2), (5.4, 6.4), (8.0, 8.6), (10.2, 10.8)):
        ax.annotate("", (end, 2.9), (start, 2.9), arrowprops={"arrowstyle": "->"})
        ax.annotate("", (start, 0.5), (end, 0.5), arrowprops={"arrowstyle": "->"})
    ax.annotate("", (4.3, 1), (4.3, 2.4), arrowprops={"arrowstyle": "->", "lw": 2})
    ax.text(4.5, 1.7, "saved tensors", va="center", fontsize=8)
    ax.set_xlim(-0.1, 12.5)
    ax.set_ylim(-0.1, 3.5)
    ax.axis("off")
    return _png(
        figure,
        "Two rows. Above, from left to right: x, bias and scale go into the forward kernels, which make y; the rest "
        "of the model makes the loss of it. Below, from right to left: 1, the gradient of the loss, goes into the "
        "backward of the rest of the model, which makes gy; the backward kernels make gx, gbias and gscale of it. A "
        "thick arrow from the forward to the backward kernels is marked: saved tensors.",
    )


def windows_with_a_pixel() -> Image:
    """Draw which results of a 3x3 convolution use one pixel, and with which element of the weight."""
    figure, (image, out) = _axes(2, 7, 2.7)
    row, column = 2, 1
    inside = {
        (row - ky, column - kx): (ky, kx)
        for ky in range(3)
        for kx in range(3)
        if 0 <= row - ky < 3 and 0 <= column - kx < 4
    }
    _grid(image, 5, 6, colour=lambda r, c: ORANGE if (r, c) == (row, column) else None)
    image.set_title("x, 5 x 6: one pixel", fontsize=9)
    _grid(
        out,
        3,
        4,
        lambda r, c: "w[{}][{}]".format(*inside[r, c]) if (r, c) in inside else "",
        lambda r, c: BLUE if (r, c) in inside else None,
    )
    out.set_title("gy, 3 x 4: whose window has it, and where", fontsize=9)
    return _png(
        figure,
        "Left: a 5 by 6 image with the pixel in row 2 and column 1 coloured. Right: the 3 by 4 gradient of the "
        "result; columns 0 and 1 of all three rows are coloured and hold the weight by which the pixel entered them: "
        "w[2][1] and w[2][0] in row 0, w[1][1] and w[1][0] in row 1, w[0][1] and w[0][0] in row 2.",
    )


def _in_few_colours(image: Image) -> Image:
    from PIL import Image as Pixels

    out = io.BytesIO()
    Pixels.open(io.BytesIO(image.data)).convert("RGB").quantize(16).save(out, format="png", optimize=True)
    return Image(out.getvalue(), alt=image.alt)


def three_fused_models() -> Image:
    """Draw the three fused models operator by operator: which kernel each belongs to, and where a kernel must wait."""
    models = (
        ("conv_sigmoid_groupnorm", ("conv", "bias", "scale", "sigmoid", "statistics", "normalise"), 5),
        ("conv_groupnorm_maxpool", ("conv", "statistics", "normalise", "scale", "max pool", "clamp"), 2),
        (
            "conv_groupnorm_logsumexp",
            ("conv", "statistics", "normalise", "tanh", "hardswish", "add conv", "logsumexp"),
            2,
        ),
    )
    figure, ax = plt.subplots(figsize=(8.6, 3.1))
    for row, (name, operators, cut) in enumerate(models):
        top = 1.75 * row
        ax.text(0, top - 0.12, name, ha="left", va="bottom", fontsize=9, fontweight="bold")
        for i, operator in enumerate(operators):
            left = 1.62 * i + (0.35 if i >= cut else 0)
            ax.add_patch(
                Rectangle((left, top), 1.35, 0.8, facecolor=BLUE if i < cut else ORANGE, edgecolor="black", lw=0.8)
            )
            ax.text(left + 0.675, top + 0.4, operator, ha="center", va="center", fontsize=8)
            if i:
                ax.annotate(
                    "",
                    (left, top + 0.4),
                    (left - 0.27 - (0.35 if i == cut else 0), top + 0.4),
                    arrowprops={"arrowstyle": "->"},
                )
        ax.plot([1.62 * cut + 0.03] * 2, [top - 0.02, top + 0.9], color="black", lw=2, ls=(0, (2, 1)))
    ax.set_xlim(-0.1, 12)
    ax.set_ylim(4.6, -0.5)
    ax.axis("off")
    return _in_few_colours(
        _png(
            figure,
            "Three rows of operators. conv_sigmoid_groupnorm: conv, bias, scale, sigmoid and statistics in blue, then "
            "a dashed line, then normalise in orange. conv_groupnorm_maxpool: conv and statistics in blue, a dashed "
            "line, then normalise, scale, max pool and clamp in orange. conv_groupnorm_logsumexp: conv and statistics "
            "in blue, a dashed line, then normalise, tanh, hardswish, add conv and logsumexp in orange.",
        )
    )


def _small(picture) -> Image:
    """Convert a picture of grader.pictures to few colours and pixels, so that a notebook stays small."""
    from PIL import Image as Pixels

    out = io.BytesIO()
    Pixels.open(io.BytesIO(picture.png(80))).convert("RGB").quantize(16).save(out, format="png", optimize=True)
    return Image(out.getvalue(), alt=picture.alt)


def tree_of_sixteen() -> Image:
    """Draw how a tree in shared memory adds up sixteen values."""
    from grader.pictures import reduction_tree

    return _small(reduction_tree(16))


def tree_of_shuffles() -> Image:
    """Draw how shuffles add up eight values without a barrier."""
    from grader.pictures import reduction_tree

    return _small(reduction_tree(8, kind="shuffle"))


def _ladder(problem: str) -> Image:
    from grader.pictures import ladder, steps_of

    return _small(ladder(steps_of(problem), problem=problem))


def groupnorm_ladder() -> Image:
    """Draw the measured times of kernels_ref/groupnorm/steps."""
    return _ladder("groupnorm")


def bias_scale_sigmoid_ladder() -> Image:
    """Draw the measured times of kernels_ref/bias_scale_sigmoid/steps."""
    return _ladder("bias_scale_sigmoid")


def logsumexp_ladder() -> Image:
    """Draw the measured times of kernels_ref/logsumexp/steps."""
    return _ladder("logsumexp")


def three_kernels_or_one() -> Image:
    """Draw measured times and counted bytes of bias, scale and sigmoid: one kernel for each, and one for all."""
    import json
    from pathlib import Path

    from grader.pictures import TimedLaunch, waterfall

    data = Path(__file__).resolve().parent.parent / "benchmarks" / "data"
    measured = json.loads((data / "steps.json").read_text())["steps"]
    counted = json.loads((data / "model.json").read_text())["steps"]

    def launches(step: str) -> list:
        moved = {
            row["name"].split(": ")[1]: row["work"]["unique_read"] + row["work"]["unique_written"]
            for row in counted
            if row["group"] == step
        }
        return [
            TimedLaunch(name, kernel["ms"] / 1e3, moved[name]) for name, kernel in measured[step]["kernels"].items()
        ]

    steps = {"three kernels": "bias_scale_sigmoid/01_three_kernels", "one kernel": "bias_scale_sigmoid/02_fused"}
    return _small(waterfall({name: launches(step) for name, step in steps.items()}))


def conv_sigmoid_groupnorm_ladder() -> Image:
    """Draw the measured times of kernels_ref/conv_sigmoid_groupnorm/steps."""
    return _ladder("conv_sigmoid_groupnorm")


def conv_groupnorm_maxpool_waterfall() -> Image:
    """Draw three steps of conv_groupnorm_maxpool, kernel by kernel: measured times, and the bytes that simt counted."""
    from grader import pictures

    data = Path(__file__).resolve().parent.parent / "benchmarks" / "data"
    times, counted = (
        json.loads((data / name).read_text(encoding="utf-8"))["steps"] for name in ("steps.json", "model.json")
    )
    variants = {}
    for step in ("02_register_tile", "03_fused_tail", "04_windows_in_epilogue"):
        rows = variants[step[3:].replace("_", " ")] = []
        for row in counted:
            if row["group"] == f"conv_groupnorm_maxpool/{step}":
                kernel, moved = (
                    row["name"].split(": ")[1],
                    row["work"]["unique_read"] + row["work"].get("unique_written", 0),
                )
                rows.append(pictures.TimedLaunch(kernel, times[row["group"]]["kernels"][kernel]["ms"] / 1e3, moved))
    return _small(pictures.waterfall(variants))


def access_maps(*requests, titles=()) -> Image:
    """Draw the sectors that requests of simt.count touch; without requests, 32 neighbours and every fourth number."""
    from grader.pictures import Access, access_map

    return _small(
        access_map(*(requests or [Access([4 * step * lane for lane in range(32)]) for step in (1, 4)]), titles=titles)
    )


def bank_maps(*requests, titles=()) -> Image:
    """Draw the banks that shared-memory requests use; without requests, a column of rows of 32 and of 33 floats."""
    from grader.pictures import Access, bank_map

    return _small(
        bank_map(*(requests or [Access([4 * row * lane for lane in range(32)]) for row in (32, 33)]), titles=titles)
    )


def conv2d_ladder() -> Image:
    """Draw the measured times of kernels_ref/conv2d/steps."""
    return _ladder("conv2d")


def matmul_ladder() -> Image:
    """Draw the measured times of kernels_ref/matmul/steps."""
    return _ladder("matmul")


def tiles_of_a_product() -> Image:
    """Draw the tiles of A and B that one block loads to compute one tile of C."""
    figure, (ax,) = _axes(1, 6.2, 4.6)

    def band(x: int, y: int, rows: int, columns: int, word: str, face, text):
        for r in range(rows):
            for c in range(columns):
                ax.add_patch(Rectangle((x + c, y + r), 1, 1, facecolor=face(r, c), edgecolor="white", lw=2))
                ax.text(x + c + 0.5, y + r + 0.5, text(r, c), ha="center", va="center", fontsize=9)
        ax.text(x + columns / 2, y - 0.25, word, ha="center", fontsize=10)

    now = 2  # the step that the picture shows
    colour = lambda inside, step: (ORANGE if step == now else BLUE) if inside else GREY  # noqa: E731
    band(5.5, 0, 4, 5, "B: inner x columns", lambda r, c: colour(c == 3, r), lambda r, c: str(r) if c == 3 else "")
    band(0, 5, 3, 4, "A: rows x inner", lambda r, c: colour(r == 1, c), lambda r, c: str(c) if r == 1 else "")
    band(
        5.5,
        5,
        3,
        5,
        "C: rows x columns",
        lambda r, c: "#a1d99b" if (r, c) == (1, 3) else GREY,
        lambda r, c: "block" if (r, c) == (1, 3) else "",
    )
    ax.set_xlim(-0.2, 10.7)
    ax.set_ylim(8.2, -0.8)
    return _in_few_colours(_png(
        figure,
        "Three matrices cut into square tiles: A, 3 by 4 tiles, on the left; B, 4 by 5 tiles, above; C, 3 by 5 tiles, "
        "where A's rows and B's columns meet. The block computes one tile of C, in row 1 and column 3. Row 1 of A's "
        "tiles and column 3 of B's tiles are coloured and numbered 0 to 3, the steps of the block's loop; tile 2 of "
        "each, orange, is in shared memory now.",
    ))  # fmt: skip
