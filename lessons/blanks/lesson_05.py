"""Lesson 5: the shift, the online update, and merging two parts."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call


def _rows(scale: float) -> torch.Tensor:
    """Return rows whose largest number is first, last and in the middle."""
    return scale * torch.tensor([[3.0, 1.0, 2.0, -1.0], [0.5, 1.0, 2.0, 4.0], [-1.0, 2.0, 0.0, 1.0]])


ROWS = [("with small numbers", 1.0), ("with numbers in the hundreds", 100.0), ("with numbers far below zero", -100.0)]

SHIFT = Blank(
    text="""
__global__ void logsumexp_rows(const float* x, float* out, int columns) {
    const float* row = x + threadIdx.x * columns;
    float m = row[0];
    for (int i = 1; i < columns; ++i) m = fmaxf(m, row[i]);
    float sum = 0.0f;
    for (int i = 0; i < columns; ++i) sum += expf(____);
    out[threadIdx.x] = ____;
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto out = torch::empty({x.size(0)}, x.options());
    logsumexp_rows<<<1, x.size(0)>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}
""",
    calls=lambda: [Call(words, (_rows(scale),)) for words, scale in ROWS],
    expected=lambda x: torch.logsumexp(x, 1),
    slips=(
        (r"expf\(row\[i\]\)", "Without the shift, `expf` of a large number is infinite: subtract the maximum."),
        (r"expf\(m-row", "The other way round: no exponent may be above 0."),
        (r"=logf\(sum\);", "The sum is that of the shifted numbers: the maximum has to be added again."),
        (r"=m\*logf|=logf\(m", "The maximum is added to the logarithm of the sum."),
    ),
    right="The largest term is e⁰ = 1, so nothing overflows, and the sum is never 0.",
)

ONLINE = Blank(
    text="""
__global__ void logsumexp_online(const float* x, float* out, int columns) {
    const float* row = x + threadIdx.x * columns;
    float top = row[0], sum = 1.0f;
    for (int i = 1; i < columns; ++i) {
        float before = top;
        top = fmaxf(top, row[i]);
        sum = ____;
    }
    out[threadIdx.x] = top + logf(sum);
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto out = torch::empty({x.size(0)}, x.options());
    logsumexp_online<<<1, x.size(0)>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}
""",
    calls=lambda: [Call(words, (_rows(scale),)) for words, scale in ROWS],
    expected=lambda x: torch.logsumexp(x, 1),
    slips=(
        (
            r"sum=sum\+expf\(row\[i\]-top\);",
            "The old sum is relative to `before`. Where the top has risen, multiply it by e to the power of "
            "`before - top`.",
        ),
        (r"expf\(top-before\)", "The other way round: the old sum gets smaller, by `expf(before - top)`."),
        (r"row\[i\]-before", "The new term is relative to the new top."),
        (r"\+1\.0f;", "Only a new largest number adds 1. Every other one adds `expf(row[i] - top)`."),
    ),
    right="One pass: the sum follows the top.",
)

MERGE = Blank(
    text="""
__global__ void merge(const float* tops, const float* sums, float* out) {
    float top_a = tops[0], sum_a = sums[0], top_b = tops[1], sum_b = sums[1];
    float top = ____;
    float sum = ____;
    out[0] = top;
    out[1] = sum;
}
""",
    declaration="torch::Tensor run(torch::Tensor tops, torch::Tensor sums);",
    host="""
torch::Tensor run(torch::Tensor tops, torch::Tensor sums) {
    auto out = torch::empty({2}, tops.options());
    merge<<<1, 1>>>(tops.data_ptr<float>(), sums.data_ptr<float>(), out.data_ptr<float>());
    return out;
}
""",
    calls=lambda: [
        Call(f"with the tops {a} and {b} and the sums 1.5 and 2", (torch.tensor([a, b]), torch.tensor([1.5, 2.0])))
        for a, b in ((3.0, 2.0), (1.0, 4.0), (500.0, 400.0))
    ],
    expected=lambda tops, sums: torch.stack([tops.max(), (sums * (tops - tops.max()).exp()).sum()]),
    slips=(
        (r"sum=sum_a\+sum_b;", "Each sum is relative to its own top. Bring both to the common one first."),
        (r"top=top_a\+top_b", "The top is the larger one of the two, as everywhere in this lesson."),
        (
            r"expf\(top_a\)|expf\(top_b\)",
            "e to the power of a top may overflow. e to the power of its distance from the larger one cannot.",
        ),
        (r"expf\(top-top_", "The other way round: the exponent is 0 or below."),
    ),
    right="Two pairs become one, whichever is the larger.",
)

BLANKS = {"shift": SHIFT, "online": ONLINE, "merge": MERGE}
