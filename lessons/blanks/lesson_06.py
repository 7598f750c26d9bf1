"""Lesson 6: where a window begins, an epilogue, and a maximum that keeps NaN."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call


def _images(*sizes: tuple[int, int, int]) -> list[Call]:
    calls = []
    for height, width, pool in sizes:
        image = torch.arange(1.0, height * width + 1).reshape(height, width) % 17
        calls.append(Call(f"with {height} × {width} pixels and windows of {pool} × {pool}", (image, pool)))
    return calls


def _first_of_windows(x: torch.Tensor, pool: int) -> torch.Tensor:
    rows, columns = (size // pool * pool for size in x.shape)
    return x[:rows:pool, :columns:pool].contiguous()


WINDOW_START = Blank(
    text="""
__global__ void first_of_window(const float* x, float* y, int width, int pool, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns) return;
    int row = i / columns, column = i % columns;  // of the result
    y[i] = x[____];
}
""",
    declaration="torch::Tensor run(torch::Tensor x, int64_t pool);",
    host="""
torch::Tensor run(torch::Tensor x, int64_t pool) {
    int width = x.size(1), rows = x.size(0) / pool, columns = width / pool;
    auto y = torch::empty({rows, columns}, x.options());
    first_of_window<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), width, pool, rows, columns);
    return y;
}
""",
    calls=lambda: _images((4, 6, 2), (5, 7, 2), (7, 10, 3)),
    expected=_first_of_windows,
    slips=(
        (r"x\[[^;]*\b2\b", "The size of a window differs between the calls: `pool` knows it."),
        (
            r"x\[row\*width\+column\]",
            "`row` and `column` count windows: the window's first pixel is `pool` times as far along.",
        ),
        (
            r"x\[row\*pool\*columns",
            "A row of the image has `width` pixels; `columns` is the number of windows in a row.",
        ),
        (
            r"x\[i\*pool\]|x\[pool\*i\]",
            "The windows of the second row begin a whole row of windows lower: use `row` and `column`.",
        ),
        (r"x\[i\]", "Number `i` is that of a window, and not that of a pixel."),
    ),
    right="Remainders at the right and at the lower border belong to no window.",
)

EPILOGUE = Blank(
    text="""
__global__ void largest_of_row(const float* x, float* y, int columns, float low, float high) {
    const float* row = x + threadIdx.x * columns;
    float best = row[0];
    for (int i = 1; i < columns; ++i) best = fmaxf(best, row[i]);
    y[threadIdx.x] = ____;
}
""",
    declaration="torch::Tensor run(torch::Tensor x, double low, double high);",
    host="""
torch::Tensor run(torch::Tensor x, double low, double high) {
    auto y = torch::empty({x.size(0)}, x.options());
    largest_of_row<<<1, x.size(0)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), low, high);
    return y;
}
""",
    calls=lambda: [
        Call(
            f"with the bounds {low} and {high}",
            (torch.tensor([[-9.0, -7.0], [0.5, 0.25], [8.0, 9.0], [1.0, 2.0]]), low, high),
        )
        for low, high in ((-1.0, 1.0), (0.0, 5.0))
    ],
    expected=lambda x, low, high: x.amax(1).clamp(low, high),
    slips=(
        (r"=best;", "The result has to be clamped: no value below `low`, and none above `high`."),
        (
            r"fmaxf\(fminf\(best,low\)|fminf\(best,low\)",
            "`fminf(best, low)` is never above `low`: it is the larger one that must be kept.",
        ),
        (r"fmaxf\(best,high\)", "`fmaxf(best, high)` is never below `high`: it is the smaller one that must be kept."),
        (r"=fmaxf\(best,low\);|=fminf\(best,high\);", "That is one bound. The other one is missing."),
    ),
    right="The clamp costs no byte: the number was in a register.",
)

KEEPS_NAN = Blank(
    text="""
__global__ void largest(const float* x, float* y, int columns) {
    const float* row = x + threadIdx.x * columns;
    float best = -INFINITY;
    for (int i = 0; i < columns; ++i)
        if (____) best = row[i];
    y[threadIdx.x] = best;
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    largest<<<1, x.size(0)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
""",
    calls=lambda: [
        Call("with numbers alone", (torch.tensor([[1.0, 3.0, 2.0], [-5.0, -6.0, -4.0]]),)),
        Call(
            "with a NaN in each row but the last",
            (torch.tensor([[torch.nan, 3.0, 2.0], [1.0, torch.nan, 2.0], [1.0, 2.0, torch.nan], [1.0, 3.0, 2.0]]),),
        ),
    ],
    expected=lambda x: x.amax(1),
    slips=(
        (
            r"if\(row\[i\]>best\)|if\(best<row\[i\]\)",
            "A comparison with NaN is false, so that the NaN is never taken: ask for it, with `isnan`.",
        ),
        (
            r"if\(!\(row\[i\]<=best\)\)|if\(!\(best>=row\[i\]\)\)",
            "This takes a NaN, and then every number after it, because that comparison is false, too.",
        ),
        (r"isnan\(best\)", "A `best` that is NaN is to stay: ask whether `row[i]` is."),
        (r"row\[i\]<best", "That keeps the smallest one."),
    ),
    right="A NaN is taken, and nothing replaces it.",
)

BLANKS = {"window_start": WINDOW_START, "epilogue": EPILOGUE, "keeps_nan": KEEPS_NAN}
