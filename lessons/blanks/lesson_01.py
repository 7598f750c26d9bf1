"""Lesson 1: the number of a thread, two indices from one number, the launch, the guard, and a window's sum."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call

EACH_THREAD = Blank(
    text="""
__global__ void double_each(const float* x, float* y) {
    int i = ____;
    y[i] = 2 * x[i];
}
""",
    declaration="torch::Tensor run(torch::Tensor x, int64_t blocks, int64_t threads);",
    host="""
torch::Tensor run(torch::Tensor x, int64_t blocks, int64_t threads) {
    auto y = torch::empty_like(x);
    double_each<<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>());
    return y;
}
""",
    calls=lambda: [
        Call(f"with {blocks} blocks of {threads} threads", (torch.arange(1.0 * blocks * threads), blocks, threads))
        for blocks, threads in ((2, 4), (3, 32))
    ],
    expected=lambda x, blocks, threads: 2 * x,
    slips=(
        (r"inti=threadIdx\.x;", "Every block numbers its threads from 0, so all blocks write the same elements."),
        (r"inti=blockIdx\.x;", "All threads of a block have the same `blockIdx.x`, so they write the same element."),
        (
            r"inti=(blockIdx\.x\+threadIdx\.x|threadIdx\.x\+blockIdx\.x);",
            "Before block `blockIdx.x` there are that many blocks, each with `blockDim.x` threads.",
        ),
        (r"\*\d+|\d+\*b", "The block size differs between the calls: `blockDim.x` knows it."),
        (r"gridDim", "`gridDim.x` is the number of blocks; you need the number of threads in one, `blockDim.x`."),
    ),
    right="Each thread has its own element, whatever the block size.",
)

ROW_AND_COLUMN = Blank(
    text="""
__global__ void mirror(const float* image, float* mirrored, int height, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int row = ____;
    int column = ____;
    mirrored[row * width + (width - 1 - column)] = image[i];
}
""",
    declaration="torch::Tensor run(torch::Tensor image, int64_t threads);",
    host="""
torch::Tensor run(torch::Tensor image, int64_t threads) {
    int height = image.size(0), width = image.size(1);
    auto mirrored = torch::empty_like(image);
    mirror<<<height * width / threads, threads>>>(image.data_ptr<float>(), mirrored.data_ptr<float>(), height, width);
    return mirrored;
}
""",
    calls=lambda: [
        Call(
            f"with {height} rows of {width} pixels and blocks of {threads} threads",
            (torch.arange(1.0 * height * width).reshape(height, width), threads),
        )
        for height, width, threads in ((3, 4, 4), (5, 2, 2), (4, 6, 8))
    ],
    expected=lambda image, threads: image.flip(1),
    slips=(
        (r"introw=i%\w+;intcolumn=i/", "These are the wrong way round: the remainder is the column."),
        (r"[/%]height", "A row has `width` pixels, so that is what you divide by; the height is not needed."),
        (
            r"introw=blockIdx|intcolumn=threadIdx",
            "A block is a row of the image only where it has `width` threads, which no launch promises. Use `i`.",
        ),
    ),
    right="The quotient is the row and the remainder is the column.",
)


def _find_waste(blocks: int, threads: int, x: torch.Tensor) -> str:
    """Say what a launch with enough threads wastes."""
    if threads % 32:
        rest = "1 thread" if threads == 1 else f"{threads} threads"
        return f"there are blocks of {rest}. A warp has 32 lanes, and the others are idle: take a multiple of 32."
    if blocks * threads >= x.numel() + 1024:
        return f"there are {blocks * threads:,} threads. Take as many blocks as the numbers need, and not more."
    return ""


ENOUGH_BLOCKS = Blank(
    text="""
__global__ void negate(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = -x[i];
}

torch::Tensor run(torch::Tensor x) {
    int n = x.numel();
    auto y = torch::empty_like(x);
    negate<<<____, ____>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    calls=lambda: [Call(f"with {n:,} numbers", (torch.arange(1.0, n + 1),)) for n in (512, 3000, 1025, 5)],
    expected=lambda x: -x,
    launch=_find_waste,
    slips=(
        (
            r"<<<1,",
            "A single block has at most 1,024 threads: take a fixed number of threads, and as many blocks as needed.",
        ),
        (r"<<<n,n>>>|<<<n,\(?n", "The second number is the threads in each block: it must not grow with `n`."),
        (
            r"<<<\(?n/\w+\)?,",
            "The division drops the remainder, so that the last numbers get no thread. Round up: `(n + 255) / 256` for "
            "256 threads.",
        ),
        (
            r"<<<\w+,\(?n",
            "The first number is the blocks, the second one the threads in each block.",
        ),
    ),
    right="There are enough threads for every size, and the guard stops those left over.",
)

GUARD = Blank(
    text="""
__global__ void add_one(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (____) return;
    y[i] = x[i] + 1;
}
""",
    declaration="torch::Tensor run(torch::Tensor x, int64_t threads);",
    host="""
torch::Tensor run(torch::Tensor x, int64_t threads) {
    int n = x.numel();
    auto y = torch::empty_like(x);
    add_one<<<(n + threads - 1) / threads, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
""",
    calls=lambda: [
        Call(f"with {n} numbers and blocks of {threads} threads", (torch.arange(1.0 * n), threads))
        for n, threads in ((32, 32), (40, 32), (100, 64), (5, 32))
    ],
    expected=lambda x, threads: x + 1,
    slips=(
        (r"if\(i<=?n\)return", "This stops the threads that have work. Those without work are to return."),
        (r"if\(i>n\)", "The elements are numbered 0 to n − 1, so thread n has no element either."),
        (r"if\(i==n\)", "Thread n is not the only one without an element: all behind it are surplus, too."),
        (r"if\((threadIdx|blockIdx)", "Compare the thread's number in the whole grid, which is `i`."),
        (r"if\(i>=n-1\)", "Element n − 1 is the last one, and it has to be written."),
    ),
    right="The surplus threads return before they touch memory.",
)

WINDOW = Blank(
    text="""
__global__ void slide(const float* x, const float* w, float* y, int n, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < size; ++k)
        sum += ____;
    y[i] = sum;
}
""",
    declaration="torch::Tensor run(torch::Tensor x, torch::Tensor w);",
    host="""
torch::Tensor run(torch::Tensor x, torch::Tensor w) {
    int size = w.numel(), n = x.numel() - size + 1;
    auto y = torch::empty({n}, x.options());
    slide<<<(n + 31) / 32, 32>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), n, size);
    return y;
}
""",
    calls=lambda: [
        Call(f"with {n} numbers and a window of {size}", (torch.arange(1.0 * n) % 7, torch.arange(1.0, size + 1)))
        for n, size in ((10, 1), (10, 3), (70, 5))
    ],
    expected=lambda x, w: torch.nn.functional.conv1d(x[None, None], w[None, None])[0, 0],
    slips=(
        (
            r"sum\+=x\[i\]\*w\[k\]|sum\+=w\[k\]\*x\[i\]",
            "Each weight meets another element: weight k the one k behind `x[i]`.",
        ),
        (r"sum\+=x\[i\+k\];", "The elements have to be multiplied by the window's weights."),
        (r"x\[k\]", "Then every thread sums the same elements. The window of thread i begins at `x[i]`."),
        (r"w\[size-1-k\]|w\[size-k", "That turns the window round, as in mathematics. PyTorch's convolution does not."),
    ),
    right="This is a convolution with one dimension; the kernel below has one such loop for rows and one for columns.",
)

BLANKS = {
    "each_thread": EACH_THREAD,
    "row_and_column": ROW_AND_COLUMN,
    "window": WINDOW,
    "enough_blocks": ENOUGH_BLOCKS,
    "guard": GUARD,
}
