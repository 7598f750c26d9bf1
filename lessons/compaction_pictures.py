"""Draw the pictures of lesson 15: each public function returns one small PNG with alt text."""

from __future__ import annotations

import matplotlib.pyplot as plt
from IPython.display import Image
from pictures import BLUE, GREY, ORANGE, _in_few_colours, _png
from scan_pictures import ARROW, _cells


def kept_numbers_move() -> Image:
    """Draw a compaction: the flags of the numbers that stay, their scan, and where each number goes."""
    numbers = [3, 0, 4, 0, 0, 9, 2, 0]
    flags = [int(number != 0) for number in numbers]
    counts = [sum(flags[: i + 1]) for i in range(len(flags))]
    kept = [number for number in numbers if number]
    figure, ax = plt.subplots(figsize=(6.6, 3.1))
    colours = [ORANGE if flag else GREY for flag in flags]
    _cells(ax, 0, numbers, colours, "x")
    _cells(ax, 1, flags, colours, "is it kept?")
    _cells(ax, 2, counts, colours, "running sum")
    _cells(ax, 4, kept, [BLUE] * len(kept), "y")
    for i, (flag, count) in enumerate(zip(flags, counts, strict=True)):
        if flag:
            ax.annotate("", (count - 1 + 0.47, 3.97), (i + 0.47, 2.83), arrowprops=ARROW)
    ax.set_xlim(-3, len(numbers))
    ax.set_ylim(4.85, -0.1)
    ax.axis("off")
    return _in_few_colours(
        _png(
            figure,
            f"Four rows. x: {numbers}. Is it kept: {flags}. Running sum of these flags: {counts}. y: {kept}. An arrow "
            "goes from each kept number to the place in y that is its running sum minus 1.",
        )
    )


def votes_of_a_warp() -> Image:
    """Draw how a lane finds its place: the votes of a warp of eight lanes, and those that lane 5 counts."""
    votes, lane = [1, 0, 1, 0, 0, 1, 1, 0], 5
    lower = [int(other < lane) for other in range(len(votes))]
    both = [a & b for a, b in zip(votes, lower, strict=True)]
    figure, ax = plt.subplots(figsize=(6.6, 2.5))
    _cells(ax, 0, range(len(votes)), ["white"] * len(votes), "lane")
    _cells(ax, 0.9, votes, [ORANGE if vote else GREY for vote in votes], "votes")
    _cells(ax, 1.9, lower, [BLUE if bit else GREY for bit in lower], f"lanes below {lane}")
    _cells(ax, 2.9, both, [ORANGE if bit else GREY for bit in both], "both")
    ax.text(len(votes) + 0.3, 3.3, f"{sum(both)} ones: place {sum(both)}", va="center", fontsize=9)
    ax.set_xlim(-3, len(votes) + 3)
    ax.set_ylim(3.85, -0.1)
    ax.axis("off")
    return _in_few_colours(
        _png(
            figure,
            f"Bits of eight lanes, from lane 0 to lane 7. Votes: {votes}. Lanes below {lane}: {lower}. Both: {both}. "
            f"These are {sum(both)} ones, so lane {lane} stores its element at place {sum(both)}.",
        )
    )


def counts_by_digit() -> Image:
    """Draw the table of a radix pass: how often each block has each digit, and where its first key of a digit goes."""
    counts = [[2, 0, 1], [1, 3, 0], [0, 1, 2]]  # counts[digit][block]
    figure, axes = plt.subplots(1, 2, figsize=(6.6, 2.2))
    begins, total = [], 0
    for row in counts:
        begins.append([])
        for count in row:
            begins[-1].append(total)
            total += count
    for ax, table, title, colour in zip(
        axes, (counts, begins), ("counts", "exclusive scan"), (ORANGE, BLUE), strict=True
    ):
        for digit, row in enumerate(table):
            _cells(ax, digit + 1, row, [colour if count else GREY for count in counts[digit]], f"digit {digit}")
        for block in range(len(counts[0])):
            ax.text(block + 0.47, 0.6, f"block {block}", ha="center", va="center", fontsize=7)
        ax.set_title(title, fontsize=9)
        ax.set_xlim(-1.8, 3.2)
        ax.set_ylim(4, 0.2)
        ax.axis("off")
    return _in_few_colours(
        _png(
            figure,
            f"Two tables with a row for each of three digits and a column for each of three blocks. Counts: {counts}. "
            f"Their exclusive scan, row by row: {begins}. Block 1, for example, stores its first key with digit 1 at "
            f"place {begins[1][1]}.",
        )
    )
