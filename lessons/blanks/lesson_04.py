"""Lesson 4: a number's channel, a grid-stride loop, and four numbers at once."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call

CHANNEL = Blank(
    text="""
__global__ void add_bias(const float* x, const float* bias, float* y, int total, int channels, int plane) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int c = ____;
    y[i] = x[i] + bias[c];
}
""",
    declaration="torch::Tensor run(torch::Tensor x, torch::Tensor bias);",
    host="""
torch::Tensor run(torch::Tensor x, torch::Tensor bias) {
    int total = x.numel(), channels = x.size(1), plane = x.size(2) * x.size(3);
    auto y = torch::empty_like(x);
    add_bias<<<(total + 63) / 64, 64>>>(x.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), total,
                                        channels, plane);
    return y;
}
""",
    calls=lambda: [
        Call(
            f"with {images} images of {channels} channels and {height} × {width} pixels",
            (torch.zeros(images, channels, height, width), 10 * torch.arange(1.0, channels + 1)),
        )
        for images, channels, height, width in ((2, 3, 4, 5), (3, 4, 2, 7))
    ],
    expected=lambda x, bias: x + bias[:, None, None],
    slips=(
        (r"intc=i/plane;", "In the second image this goes on counting: `i / plane` numbers the planes of all images."),
        (r"intc=i%channels", "Neighbours in memory are pixels of one plane, and so they have the same channel."),
        (r"intc=i%plane", "The remainder is the pixel in its plane. The quotient says which plane it is."),
        (r"intc=i/channels", "A channel has `plane` numbers, so that is what you divide by first."),
    ),
    right="The quotient numbers the planes, and its remainder is the channel.",
)

GRID_STRIDE = Blank(
    text="""
__global__ void twice(const float* x, float* y, int n) {
    for (int i = ____; i < n; i += ____)
        y[i] = 2 * x[i];
}
""",
    declaration="torch::Tensor run(torch::Tensor x, int64_t blocks, int64_t threads);",
    host="""
torch::Tensor run(torch::Tensor x, int64_t blocks, int64_t threads) {
    auto y = torch::empty_like(x);
    twice<<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
""",
    calls=lambda: [
        Call(
            f"with {n} numbers and {blocks} block{'s' if blocks > 1 else ''} of {threads} threads",
            (torch.arange(1.0, n + 1), blocks, threads),
        )
        for n, blocks, threads in ((200, 2, 32), (50, 1, 32), (20, 3, 32), (300, 2, 64))
    ],
    expected=lambda x, blocks, threads: 2 * x,
    slips=(
        (
            r"i\+=blockDim\.x\)",
            "All threads of the grid share the numbers, so a thread jumps over as many as the whole grid has.",
        ),
        (
            r"inti=threadIdx\.x;",
            "The threads of all blocks begin at different numbers: begin at the thread's number in the grid.",
        ),
        (
            r"i\+=gridDim\.x\)",
            "That is the number of blocks. The grid has as many threads as blocks times threads in a block.",
        ),
        (
            r"(Dim|Idx)\.x\*\d+|[=(]\d+\*(grid|block)",
            "The block size differs between the calls: `blockDim.x` knows it.",
        ),
        (r"i\+=1\)|i\+=n\)", "A thread jumps over as many numbers as the whole grid has threads."),
    ),
    right="Any grid will do, and the condition of the loop is the guard.",
)

FOUR_AT_ONCE = Blank(
    text="""
__global__ void negate_four(const float* x, float* y, int n) {  // n is a multiple of 4
    const float4* in = reinterpret_cast<const float4*>(x);
    float4* out = reinterpret_cast<float4*>(y);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= ____) return;
    float4 v = in[i];
    out[i] = make_float4(____);
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    int n = x.numel();
    auto y = torch::empty_like(x);
    negate_four<<<(n / 4 + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
""",
    calls=lambda: [Call(f"with {n} numbers", (torch.arange(1.0, n + 1),)) for n in (128, 40, 4)],
    expected=lambda x: -x,
    slips=(
        (r"if\(i>=n\)", "`i` counts groups of four numbers, and there are `n / 4` of them."),
        (r"if\(i>=4\*n|if\(i>=n\*4", "`i` counts groups of four numbers: fewer than `n`, and not more."),
        (r"make_float4\(-v\.x,-v\.x|make_float4\(-v\.x\)", "A `float4` has four parts: `x`, `y`, `z` and `w`."),
        (r"make_float4\(v\.", "The numbers are to be negated."),
    ),
    right="One request for four numbers of each thread.",
)

BLANKS = {"channel": CHANNEL, "grid_stride": GRID_STRIDE, "four_at_once": FOUR_AT_ONCE}
