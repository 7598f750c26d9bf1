"""Lesson 8: merging moments, the largest or the smallest by the factor's sign, and work drawn in order."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call


def _moments(values: torch.Tensor) -> torch.Tensor:
    """Return count, mean, and the sum of squared distances from it."""
    return torch.stack([torch.tensor(float(len(values))), values.mean(), (values - values.mean()).square().sum()])


def _pairs() -> list[Call]:
    made = [([1.0, 2.0, 6.0], [3.0]), ([5.0, 7.0], [1.0, 1.0, 2.0, 4.0])]
    return [
        Call(f"with {len(a)} and {len(b)} numbers", (_moments(torch.tensor(a)), _moments(torch.tensor(b))))
        for a, b in made
    ]


def _merge(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    count, d = a[0] + b[0], b[1] - a[1]
    return torch.stack([count, (a[0] * a[1] + b[0] * b[1]) / count, a[2] + b[2] + d * d * a[0] * b[0] / count])


MERGED = Blank(
    text="""
struct Moments { float count, mean, squares; };

__global__ void merge(const Moments* a, const Moments* b, Moments* out) {
    float count = a->count + b->count;
    float d = b->mean - a->mean;
    float mean = ____;
    float squares = ____;
    *out = {count, mean, squares};
}
""",
    declaration="torch::Tensor run(torch::Tensor a, torch::Tensor b);",
    host="""
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
    auto out = torch::empty_like(a);
    const auto of = [](const torch::Tensor& t) { return reinterpret_cast<Moments*>(t.data_ptr<float>()); };
    merge<<<1, 1>>>(of(a), of(b), of(out));
    return out;
}
""",
    calls=_pairs,
    expected=_merge,
    slips=(
        (
            r"mean=\(a->mean\+b->mean\)/2|mean=a->mean\+d/2",
            "Each part counts by its number of elements: move from a's mean by b's share of `d`.",
        ),
        (r"mean=a->mean\+d\*a->count", "b's share pulls the mean towards b: `b->count / count`."),
        (
            r"squares=a->squares\+b->squares;",
            "Each sum of squares is around its own mean. The distance between the means adds to them.",
        ),
        (r"d\*d\*\(a->count\+b->count\)|d\*d\*count", "The term is d² · (a's count · b's count) / count."),
    ),
    right="No large square is subtracted from another, so nothing cancels.",
)

BY_SIGN = Blank(
    text="""
__global__ void largest_scaled(const float* x, const float* factor, float* y, int columns) {
    const float* row = x + threadIdx.x * columns;
    float sign = factor[threadIdx.x] < 0.0f ? -1.0f : 1.0f;
    float best = -INFINITY;
    for (int i = 0; i < columns; ++i) best = fmaxf(best, ____);
    y[threadIdx.x] = ____;  // the largest of factor * row[i]
}
""",
    declaration="torch::Tensor run(torch::Tensor x, torch::Tensor factor);",
    host="""
torch::Tensor run(torch::Tensor x, torch::Tensor factor) {
    auto y = torch::empty_like(factor);
    largest_scaled<<<1, factor.numel()>>>(x.data_ptr<float>(), factor.data_ptr<float>(), y.data_ptr<float>(),
                                          x.size(1));
    return y;
}
""",
    calls=lambda: [
        Call(
            f"with the factors {factors}",
            (torch.tensor([[1.0, -3.0, 2.0], [4.0, 5.0, -1.0], [-2.0, -7.0, -3.0]]), torch.tensor(factors)),
        )
        for factors in ([2.0, 1.0, 0.5], [-2.0, -1.0, 0.5])
    ],
    expected=lambda x, factor: (factor[:, None] * x).amax(1),
    slips=(
        (
            r"fmaxf\(best,row\[i\]\)",
            "Where the factor is negative, the smallest number survives: compare `sign * row[i]`.",
        ),
        (
            r"=factor\[threadIdx\.x\]\*best;|=best\*factor\[threadIdx\.x\];",
            "`best` has the sign in it. Take it out again: multiply by `sign`, or by the factor's absolute value.",
        ),
        (r"=best;", "The factor is missing."),
        (
            r"factor\[threadIdx\.x\]\*row\[i\]",
            "That multiplies once for each number. Once for each row is enough: compare `sign * row[i]`.",
        ),
    ),
    right="One multiplication by the factor for each row, whatever its sign.",
)

IN_ORDER = Blank(
    text="""
__global__ void draw(const float* x, float* y, int* counter) {
    __shared__ int work;
    if (threadIdx.x == 0) work = ____;  // how many pieces were drawn before
    ____;
    int i = work * 64 + threadIdx.x;
    y[i] = 2 * x[i];
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    int blocks = x.numel() / 64;
    auto y = torch::empty({x.numel() + 1}, x.options());
    auto counter = torch::zeros({1}, x.options().dtype(torch::kInt));
    draw<<<blocks, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), counter.data_ptr<int>());
    y[x.numel()].fill_(counter.item<int>());
    return y;
}
""",
    calls=lambda: [Call("with 3 blocks of 64 threads and, behind their results, the counter", (torch.arange(192.0),))],
    expected=lambda x: torch.cat([2 * x, torch.tensor([x.numel() / 64])]),
    slips=(
        (
            r"work=blockIdx",
            "Then the block's number fixes the piece, and blocks do not start in order. Draw from `counter`.",
        ),
        (
            r"work=(\*counter|counter\[0\])(\+\+|;)|work=\+\+|\*counter\+=",
            "Several blocks do this at once: `atomicAdd(counter, 1)` counts, and returns what was there before.",
        ),
        (r"__syncwarp", "The other warp of the block reads `work`, too: the whole block has to wait."),
        (r"atomicAdd\(counter,1\)\+1", "`atomicAdd` returns what was there before, so the first piece is number 0."),
        (r"atomicAdd\(&work", "The counter that all blocks share is `counter`."),
    ),
    right="Whoever starts first gets the first piece.",
)

BLANKS = {"moments_merged": MERGED, "drawn_in_order": IN_ORDER, "by_sign": BY_SIGN}
