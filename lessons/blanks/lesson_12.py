"""Lesson 12: the sum and the accumulator of a tile, the tiles of a causal mask, and the rows of a fragment."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call


def _columns(scale: float) -> torch.Tensor:
    """Return rows whose largest number is in the first, the last and a middle tile of four columns."""
    rows = [
        [4.0, 1.0, 2.0, -1.0, 0.5, 3.0, 1.5, 0.0, -2.0, 1.0, 2.5, 3.5],
        [0.5, 1.0, 0.0, -1.0, 1.5, 2.0, 1.0, 0.5, 3.0, 1.0, 2.0, 4.0],
        [-1.0, 2.0, 0.0, 1.0, 1.5, 4.0, 3.0, 0.0, 2.0, -2.0, 1.0, 0.5],
    ]
    return scale * torch.tensor(rows)


SCALES = [("with small numbers", 1.0), ("with numbers in the hundreds", 100.0)]

TILE_SUM = Blank(
    text="""
// one thread per row; the columns come in tiles of four
__global__ void softmax_tiles(const float* x, float* y, int columns) {
    x += threadIdx.x * columns;
    y += threadIdx.x * columns;
    float top = x[0], sum = 0.0f;
    for (int first = 0; first < columns; first += 4) {
        float larger = top;
        for (int c = first; c < first + 4; ++c) larger = ____;
        sum = ____;
        for (int c = first; c < first + 4; ++c) sum += expf(x[c] - larger);
        top = larger;
    }
    for (int c = 0; c < columns; ++c) y[c] = expf(x[c] - top) / sum;
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    softmax_tiles<<<1, x.size(0)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
""",
    calls=lambda: [Call(words, (_columns(scale),)) for words, scale in SCALES],
    expected=lambda x: torch.softmax(x, 1),
    slips=(
        (r"sum=sum;", "The sum so far is relative to `top`. Multiply it by e to the power of `top - larger`."),
        (r"expf\(larger-top\)", "The other way round: the sum so far gets smaller, by `expf(top - larger)`."),
        (r"larger=fmaxf\(top,x\[c\]\)|larger=x\[c\];", "This forgets the tile's other columns: compare with `larger`."),
        (r"sum=0(\.0f)?;for\(intc", "The tiles before this one count as well."),
    ),
    right="One multiplication corrects the sum for a whole tile.",
)


def _scores(keys: int, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    scores = scale * ((torch.arange(4.0 * keys) * 7 % 11) / 5 - 1).reshape(4, keys)
    return scores, (torch.arange(2.0 * keys) * 3 % 7 - 3).reshape(keys, 2)


RESCALED = Blank(
    text="""
// one thread per query: the softmax of its scores times the values, which have two numbers each
__global__ void weighted_sum(const float* scores, const float* values, float* out, int keys) {
    const float* row = scores + threadIdx.x * keys;
    float top = row[0], sum = 0.0f, acc[2] = {0.0f, 0.0f};
    for (int first = 0; first < keys; first += 4) {
        int end = min(first + 4, keys);
        float before = top;
        for (int j = first; j < end; ++j) top = fmaxf(top, row[j]);
        float shrink = ____;
        sum *= shrink;
        for (int d = 0; d < 2; ++d) acc[d] = ____;
        for (int j = first; j < end; ++j) {
            float e = expf(row[j] - top);
            sum += e;
            for (int d = 0; d < 2; ++d) acc[d] += e * values[j * 2 + d];
        }
    }
    for (int d = 0; d < 2; ++d) out[threadIdx.x * 2 + d] = ____;
}
""",
    declaration="torch::Tensor run(torch::Tensor scores, torch::Tensor values);",
    host="""
torch::Tensor run(torch::Tensor scores, torch::Tensor values) {
    auto out = torch::empty({scores.size(0), 2}, scores.options());
    weighted_sum<<<1, scores.size(0)>>>(
        scores.data_ptr<float>(), values.data_ptr<float>(), out.data_ptr<float>(), scores.size(1));
    return out;
}
""",
    calls=lambda: [
        Call(f"with {keys} keys and scores up to {1.2 * scale:g}", _scores(keys, scale))
        for keys, scale in ((4, 1.0), (11, 1.0), (16, 100.0))
    ],
    expected=lambda scores, values: torch.softmax(scores, 1) @ values,
    slips=(
        (r"expf\(top-before\)", "The other way round: what was added up before gets smaller, by `expf(before - top)`."),
        (
            r"shrink=1|shrink=before",
            "The factor is e to the power of `before - top`.",
        ),
        (r"acc\[d\]=acc\[d\];|acc\[d\]=0", "`acc` is relative to the old top, as the sum is: both shrink."),
        (
            r"acc\[d\]=acc\[d\]/sum",
            "Divide once, at the end. Until then `acc` and `sum` share one top.",
        ),
        (r"=acc\[d\];$|=acc\[d\];\}", "The weights do not add up to 1 yet: divide by their sum."),
    ),
    right="`sum` and `acc` follow the top together, and one division per result is enough.",
)


def _count_tiles(blocks: int, Q: int, T: int) -> torch.Tensor:
    """Count the tiles of keys that a block reads, and those that need no mask, by asking for each pair."""
    needed, whole = [], []
    for block in range(blocks):
        queries = range(block * Q, (block + 1) * Q)
        tiles = [range(t * T, (t + 1) * T) for t in range(blocks * Q // T + 1)]
        needed.append(sum(any(j <= i for i in queries for j in tile) for tile in tiles))
        whole.append(sum(all(j <= i for i in queries for j in tile) for tile in tiles))
    return torch.tensor([needed, whole], dtype=torch.float32)


TILES_SEEN = Blank(
    text="""
// thread b: block b has the queries from b * Q on, Q of them; tile t has the keys from t * T on, T of them
__global__ void count_tiles(float* needed, float* whole, int Q, int T) {
    int first = threadIdx.x * Q, last = first + Q - 1;  // the block's first and last query
    needed[threadIdx.x] = ____;
    whole[threadIdx.x] = ____;
}
""",
    declaration="torch::Tensor run(int64_t blocks, int64_t Q, int64_t T);",
    host="""
torch::Tensor run(int64_t blocks, int64_t Q, int64_t T) {
    auto out = torch::empty({2, blocks});
    count_tiles<<<1, blocks>>>(out.data_ptr<float>(), out.data_ptr<float>() + blocks, Q, T);
    return out;
}
""",
    calls=lambda: [
        Call(f"with blocks of {Q} queries and tiles of {T} keys", (blocks, Q, T))
        for blocks, Q, T in ((4, 64, 32), (16, 8, 32), (6, 5, 3))
    ],
    expected=_count_tiles,
    slips=(
        (r"needed\[threadIdx\.x\]=last/T;", "`last / T` is the number of the last tile. Tile 0 counts too."),
        (r"needed\[threadIdx\.x\]=\(?first", "The last query of the block sees the most keys."),
        (
            r"whole\[threadIdx\.x\]=\(?last",
            "The first query of the block sees the fewest keys.",
        ),
        (r"whole\[threadIdx\.x\]=first/T;", "Query `first` sees `first + 1` keys: its own is one of them."),
    ),
    right="All tiles from `needed` on are skipped, and only those from `whole` to there compare indices.",
)

FRAGMENT_MAX = Blank(
    text="""
// the scores of 16 queries and 8 keys as mma.sync returns them; out[r]: the largest score of row r, for r below 8
__global__ void row_max(const float* scores, float* out) {
    int group = threadIdx.x / 4, two = threadIdx.x % 4 * 2;
    float c[4];  // this lane's part of the fragment
    for (int i = 0; i < 4; ++i) c[i] = scores[(group + i / 2 * 8) * 8 + two + i % 2];

    float top = fmaxf(____, ____);
    for (int step = 1; step < ____; step *= 2) {
        top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, step));
    }
    if (threadIdx.x % 4 == 0) out[group] = top;
}
""",
    declaration="torch::Tensor run(torch::Tensor scores);",
    host="""
torch::Tensor run(torch::Tensor scores) {
    auto out = torch::empty({8}, scores.options());
    row_max<<<1, 32>>>(scores.data_ptr<float>(), out.data_ptr<float>());
    return out;
}
""",
    calls=lambda: [
        Call(f"with scores of {least:g} and more", ((torch.arange(128.0) * factor % 127 + least).reshape(16, 8),))
        for factor, least in ((37, 0.0), (53, -100.0))
    ],
    expected=lambda scores: scores[:8].amax(1),
    slips=(
        (r"fmaxf\(c\[[0-3]\],c\[[23]\]\)|fmaxf\(c\[[23]\]", "`c[2]` and `c[3]` belong to row `group + 8`."),
        (r"step<=?(8|16|32);", "Lanes 4 and above have other rows: only four lanes share a row."),
        (r"step<=?(1|2);", "This joins two lanes at most, and four lanes share a row."),
    ),
    right="Two shuffles reach all eight scores of a row.",
)

BLANKS = {"tile_sum": TILE_SUM, "rescaled": RESCALED, "tiles_seen": TILES_SEEN, "fragment_max": FRAGMENT_MAX}
