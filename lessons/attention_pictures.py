"""Draw the pictures of lesson 12: each public function returns one small PNG with alt text."""

from IPython.display import Image
from matplotlib.patches import Rectangle
from pictures import BLUE, GREY, ORANGE, _axes, _grid, _in_few_colours, _ladder, _png

GREEN = "#a1d99b"


def attention_as_products() -> Image:
    """Draw attention as two matrix products, with the matrix of scores between them in its true proportion."""
    figure, (ax,) = _axes(1, 8, 3.6)

    def matrix(left: float, top: float, rows: float, columns: float, face: str, word: str):
        ax.add_patch(Rectangle((left, top), columns, rows, facecolor=face, edgecolor="black", lw=0.8))
        ax.text(left + columns / 2, top + rows / 2, word, ha="center", va="center", fontsize=9)

    long, short = 6.0, 1.2  # length and head_dim: five to one
    matrix(0, 2, long, short, BLUE, "q")
    matrix(1.7, 0.4, short, long, BLUE, "k, transposed")
    matrix(1.7, 2, long, long, ORANGE, "scores\nlength × length")
    matrix(10.6, 2, long, short, BLUE, "v")
    matrix(13.6, 2, long, short, GREEN, "result")
    ax.annotate("", (10.4, 5), (7.9, 5), arrowprops={"arrowstyle": "->"})
    ax.text(9.15, 4.7, "softmax\nof each row", ha="center", va="bottom", fontsize=8)
    ax.annotate("", (13.4, 5), (12.0, 5), arrowprops={"arrowstyle": "->"})
    ax.text(12.7, 4.8, "times v", ha="center", va="bottom", fontsize=8)
    ax.text(0.6, 8.3, "length ×\nhead_dim", ha="center", va="top", fontsize=8)
    ax.set_xlim(-0.3, 15.1)
    ax.set_ylim(9.2, 0.2)
    return _in_few_colours(
        _png(
            figure,
            "Narrow blue matrices of length by head_dim: q, k, transposed, and v. Where the rows of q and the columns "
            "of the transposed k cross, the orange matrix of scores, length by length, five times as wide as q. "
            "An arrow marked softmax of each row leads to v, and an arrow marked times v to the narrow green result.",
        )
    )


def tiles_of_scores() -> Image:
    """Draw which tiles of the causal scores a block of 64 queries skips, masks, and reads without a mask."""
    figure, (ax,) = _axes(1, 6.4, 3.6)
    blocks, tiles = 4, 8

    def kind(block: int, tile: int) -> str:
        return "whole" if tile < 2 * block else "mask" if tile < 2 * block + 2 else ""

    faces = {"whole": BLUE, "mask": ORANGE, "": GREY}
    _grid(ax, blocks, tiles, kind, lambda block, tile: faces[kind(block, tile)])
    ax.plot([0, tiles], [0, blocks], color="black", lw=1, ls=(0, (3, 2)))
    for tile in range(tiles):
        ax.text(tile + 0.5, -0.15, str(32 * tile), ha="center", fontsize=8)
    for block in range(blocks):
        ax.text(-0.1, block + 0.5, f"{64 * block}", ha="right", va="center", fontsize=8)
    ax.text(4, -0.6, "first key of a tile of 32", ha="center", fontsize=9)
    ax.text(-0.9, 2, "first query\nof a block of 64", ha="center", va="center", rotation=90, fontsize=9)
    ax.set_xlim(-1.5, tiles)
    ax.set_ylim(blocks, -1)
    return _in_few_colours(
        _png(
            figure,
            "A matrix of 4 blocks of 64 queries by 8 tiles of 32 keys, with a dashed diagonal. In each row two orange "
            "tiles, which the diagonal crosses, are marked mask: tiles 0 and 1 in block 0, 2 and 3 in block 1, and so "
            "on. All tiles to their left are blue and marked whole, all to their right are grey and empty.",
        )
    )


def lanes_of_mma() -> Image:
    """Draw the lanes that hold two neighbouring results of mma.sync, and those that hold its left factor."""
    figure, axes = _axes(2, 8, 2.8)
    rows = 5

    def lane(row: int, column: int) -> str:
        return str(4 * row + column % 8 // 2)

    for ax, title, right in (
        (axes[0], "two results, 16 × 8 each: scores of 8 + 8 keys", ORANGE),
        (axes[1], "left factor, 16 × 16: weights of 16 keys", BLUE),
    ):
        _grid(ax, rows, 16, lane, lambda _, column, right=right: right if column < 8 else GREY)
        ax.set_title(title, fontsize=9)
        ax.text(8, rows + 0.7, "and so on, to row 7; rows 8 to 15 the same again", ha="center", fontsize=8)
        ax.set_ylim(rows + 1, 0)
    return _in_few_colours(
        _png(
            figure,
            "Left: the first five rows of two results of mma.sync next to each other, 8 columns each. Row 0 holds the "
            "numbers of lanes 0, 0, 1, 1, 2, 2, 3, 3 in the first result and the same again in the second; row 1 lanes "
            "4 to 7 in the same way, and so on. Right: the left factor of the next mma.sync, 16 columns: every cell "
            "has the same lane as on the left.",
        )
    )


def softmax_ladder() -> Image:
    """Draw the measured times of kernels_ref/softmax/steps."""
    return _ladder("softmax")


def attention_ladder() -> Image:
    """Draw the measured times of kernels_ref/attention/steps."""
    return _ladder("attention")
