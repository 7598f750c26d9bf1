"""Lesson 11: a barrier that all threads reach, an address of float4, and a product of two ints."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call

ALL_REACH_IT = Blank(
    text="""
__global__ void sums_of_blocks(const float* x, float* y, int n) {
    __shared__ float part[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    part[threadIdx.x] = ____;  // the last block has threads without a number
    for (int half = 32; half > 0; half /= 2) {
        ____;
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    int n = x.numel(), blocks = (n + 63) / 64;
    auto y = torch::empty({blocks}, x.options());
    sums_of_blocks<<<blocks, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
""",
    calls=lambda: [Call(f"with {n} numbers", (torch.arange(n) % 7 + 1.0,)) for n in (128, 100)],
    expected=lambda x: torch.stack([part.sum() for part in x.split(64)]),
    slips=(
        (
            r"=x\[i\];",
            "The last block reads past the end. Its surplus threads have to store something that adds nothing.",
        ),
        (
            r"if\([^)]*\)__syncthreads",
            "All threads of the block have to reach the barrier, also those without a number.",
        ),
        (r"__syncwarp", "In the first step the two numbers belong to different warps: the whole block has to wait."),
    ),
    right="Surplus threads store a 0 and go along to every barrier.",
)

IN_FOURS = Blank(
    text="""
__global__ void sums_of_rows(const float* x, float* y, int width) {
    const float* row = x + blockIdx.x * width;
    float sum = 0.0f;
    if (____) {  // then every row begins at a multiple of 16 bytes
        for (int i = 4 * threadIdx.x; i < width; i += 128) {
            float4 v = *reinterpret_cast<const float4*>(row + i);
            sum += v.x + v.y + v.z + v.w;
        }
    } else {
        for (int i = threadIdx.x; i < width; i += 32) sum += row[i];
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    sums_of_rows<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
""",
    calls=lambda: [
        Call(f"with rows of {width} numbers", ((torch.arange(3 * width) % 5 + 1.0).reshape(3, width),))
        for width in (8, 6, 9, 132, 7, 130)
    ],
    expected=lambda x: x.sum(1),
    slips=(
        (
            r"if\(width>=?\d+\)",
            "A long row can begin anywhere, too. What counts is whether its length is a multiple of 4.",
        ),
        (r"width%3", "A `float4` has four floats: what counts is whether the length is a multiple of 4."),
        (r"width%2==0", "A `float4` has 16 bytes, which are four floats."),
        (r"width%16==0", "16 bytes are four floats: a multiple of 4 is enough, and this leaves out many rows."),
        (r"if\([^)]*blockIdx", "Whether *every* row begins at such an address follows from the length alone."),
    ),
    right="The narrow version takes the rows that do not fit.",
)

WIDE_ENOUGH = Blank(
    text="""
__global__ void places(int64_t* out, int image, int elements) {
    int i = threadIdx.x;
    out[i] = ____ + i;  // of element i of this image, counted from the first image
}
""",
    declaration="torch::Tensor run(int64_t image, int64_t elements);",
    host="""
torch::Tensor run(int64_t image, int64_t elements) {
    auto out = torch::empty({4}, torch::kInt64);
    places<<<1, 4>>>(out.data_ptr<int64_t>(), image, elements);
    return out;
}
""",
    calls=lambda: [
        Call(f"with image {image} and {elements:,} elements in each", (image, elements))
        for image, elements in ((2, 100), (40, 1 << 26), (80, 1 << 26), (1 << 29, (1 << 29) + 1))
    ],
    expected=lambda image, elements: torch.arange(4) + image * elements,
    slips=(
        (
            r"=image\*elements\+|=elements\*image\+",
            "The product of two ints is an int, wherever it is stored. Convert one of the factors first.",
        ),
        (
            r"\(int64_t\)\(image\*elements\)|\(longlong\)\(image\*elements\)",
            "The product has overflowed before it is converted. Convert one of the factors.",
        ),
        (
            r"\(float\)|\(double\)|float\(|double\(",
            "A float has 24 bits and a double 53: far behind, neither can tell neighbouring elements apart.",
        ),
        (r"unsigned|uint32_t", "`unsigned` has 32 bits, too: its product overflows at 4,294,967,296."),
    ),
    right="One factor with 64 bits makes the product one of 64 bits.",
)

BLANKS = {"all_reach_it": ALL_REACH_IT, "in_fours": IN_FOURS, "wide_enough": WIDE_ENOUGH}
