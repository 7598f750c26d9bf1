"""Draw the pictures of lesson 14: each public function returns one small PNG with alt text."""

from __future__ import annotations

import matplotlib.pyplot as plt
from IPython.display import Image
from matplotlib.patches import Rectangle
from pictures import BLUE, GREY, ORANGE, _in_few_colours, _ladder, _png

GREEN = "#a1d99b"


def _fields(ax, top: float, fields: list[tuple[str, float, str]], left: float = 0) -> float:
    """Draw fields (text, width, colour) side by side from left on; return where they end."""
    for text, width, colour in fields:
        ax.add_patch(Rectangle((left, top), width, 0.8, facecolor=colour, edgecolor="white", lw=1))
        ax.text(left + width / 2, top + 0.4, text, ha="center", va="center", fontsize=8)
        left += width
    return left


def weights_in_words() -> Image:
    """Draw eight weights as halves, bytes and nibbles, and a group of 128 nibbles with its scale."""
    figure, ax = plt.subplots(figsize=(8, 3))
    for row, (name, bits) in enumerate((("halves", 16), ("bytes", 8), ("nibbles", 4))):
        end = _fields(ax, 1.1 * row, [(str(k), bits, BLUE) for k in range(8)])
        ax.text(-1.5, 1.1 * row + 0.4, f"weights 0 to 7 as {name}", ha="right", va="center", fontsize=9)
        ax.text(end + 1.5, 1.1 * row + 0.4, f"{8 * bits} bits", ha="left", va="center", fontsize=9)
    end = _fields(ax, 3.8, [*((str(word), 7, BLUE) for word in range(16)), ("scale", 14, ORANGE)])
    ax.text(-1.5, 4.2, "a group: words 0 to 15", ha="right", va="center", fontsize=9)
    ax.text(end / 2, 4.95, "128 weights as nibbles, and one scale for all of them", ha="center", fontsize=9)
    ax.set_xlim(-46, 146)
    ax.set_ylim(5.2, -0.1)
    ax.axis("off")
    return _in_few_colours(
        _png(
            figure,
            "Four rows. Eight weights take 128 bits as halves, 64 bits as bytes, and 32 bits as nibbles, which are one "
            "word. The last row is a group of 128 weights as nibbles: 16 blue words, numbered 0 to 15, and one orange "
            "half, the scale of all of them.",
        )
    )


def time_by_batch() -> Image:
    """Draw the lowest time of a product against the batch size, for weights of 16, 8 and 4 bits."""
    from simt.counting.time_model import GPUS
    from simt.devices import DEVICES

    gpu, chip = GPUS["H200"], DEVICES["H200"]
    weights = 28672 * 8192
    halves = gpu.tensor * chip.multiprocessors * chip.clock_khz * 1e3
    figure, ax = plt.subplots(figsize=(6.4, 3.2))
    batches = [2 ** (i / 8) for i in range(8 * 11 + 1)]
    for name, bits, rate, colour, style in (
        ("half", 16, halves, "#3182bd", "-"),
        ("int8", 8, 2 * halves, "#31a354", "--"),
        ("int4", 4.125, halves, "#e6550d", "-."),
    ):
        times = [1e6 * max(weights * bits / 8 / gpu.dram, batch * weights / rate) for batch in batches]
        ax.loglog(batches, times, style, color=colour, label=name)
    ax.set_xlabel("batch: vectors that are multiplied at once")
    ax.set_ylabel("lowest time, µs")
    ticks = [1, 4, 16, 64, 256, 1024]
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.set_yticks([25, 50, 100, 400], ["25", "50", "100", "400"])
    ax.minorticks_off()
    ax.legend(fontsize=9)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return _in_few_colours(
        _png(
            figure,
            "Three lines on logarithmic axes, the lowest time against the batch. Each is flat first and then rises in "
            "proportion to the batch. int4 is flat at 25 microseconds up to a batch of 36, int8 at 49 and half at 98 "
            "microseconds up to 140. Where they rise, int4 and half are one line, and int8 takes half as long. int4 is "
            "the lowest up to a batch of about 70, int8 from there on.",
        )
    )


def bits_of_a_weight() -> Image:
    """Draw how the bits of a nibble become those of a float and of a half."""
    figure, ax = plt.subplots(figsize=(8, 2.6))
    rows = (
        ("0x4b000000 | q", [("0", 1, GREY), ("10010110", 8, ORANGE), ("0000000000000000000", 19, BLUE)], "2²³ + q"),
        ("0x6400 | q", [("0", 1, GREY), ("11001", 5, ORANGE), ("000000", 6, BLUE)], "1,024 + q"),
    )
    for row, (name, fields, value) in enumerate(rows):
        top = 1.5 * row
        end = _fields(ax, top, [*fields, ("q", 4, GREEN)])
        ax.text(-0.5, top + 0.4, name, ha="right", va="center", fontsize=9, family="monospace")
        ax.text(end + 0.5, top + 0.4, f"= {value}", ha="left", va="center", fontsize=9)
        ax.text(5 if row == 0 else 3.5, top - 0.2, "exponent", ha="center", va="center", fontsize=8)
        ax.text(end - (11 if row == 0 else 5), top - 0.2, "mantissa", ha="center", va="center", fontsize=8)
    ax.set_xlim(-7.5, 37)
    ax.set_ylim(2.5, -0.5)
    ax.axis("off")
    return _in_few_colours(
        _png(
            figure,
            "Two rows of bits. Above, a float: sign 0, exponent 10010110, a mantissa of 19 zeros and, in green, the "
            "four bits of q. Its value is 2 to the power of 23, plus q. Below, a half: sign 0, exponent 11001, six "
            "zeros and the four bits of q. Its value is 1,024 plus q.",
        )
    )


def int4_matvec_ladder() -> Image:
    """Draw the measured times of kernels_ref/int4_matvec/steps."""
    return _ladder("int4_matvec")


def int8_matmul_ladder() -> Image:
    """Draw the measured times of kernels_ref/int8_matmul/steps."""
    return _ladder("int8_matmul")
