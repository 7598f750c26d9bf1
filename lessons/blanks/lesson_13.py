"""Lesson 13: a round of a scan in one array, a scan of a warp, bins of a block and of lanes."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call


def _numbers(n: int) -> torch.Tensor:
    return torch.arange(n) * 7 % 5 + 1.0


ROUNDS = Blank(
    text="""
__global__ void scan_64(const float* x, float* y) {
    __shared__ float sums[64];
    int t = threadIdx.x;
    sums[t] = x[t];
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        float left = ____;
        ____;
        sums[t] += left;
        ____;
    }
    y[t] = sums[t];
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    scan_64<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>());
    return y;
}
""",
    calls=lambda: [Call("with 64 numbers", (_numbers(64),))],
    expected=lambda x: x.cumsum(0),
    slips=(
        (r"__syncwarp", "A left neighbour may be in another warp: the whole block has to wait."),
        (r"left=sums\[t-d\];", "Threads below d have no such neighbour. They add 0."),
        (r"x\[t-d\]", "`x` has the numbers from the beginning. The sums so far are in `sums`."),
        (r"sums\[t-1\]", "The distance doubles from round to round: it is `d`."),
        (r"t>d\?", "Thread d has a neighbour d places to its left, too: thread 0."),
    ),
    right="In each round all threads read, then all threads write: six rounds make 64 running sums.",
)

LOWER_LANES = Blank(
    text="""
__global__ void scan_warps(const float* x, float* y) {
    int lane = threadIdx.x % 32;
    float value = x[threadIdx.x];
    for (int d = 1; d < 32; d *= 2) {
        float lower = ____;
        if (____) value += lower;
    }
    y[threadIdx.x] = value;
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    scan_warps<<<1, x.numel()>>>(x.data_ptr<float>(), y.data_ptr<float>());
    return y;
}
""",
    calls=lambda: [Call(f"with {n // 32} warp{'s' if n > 32 else ''}", (_numbers(n),)) for n in (32, 64)],
    expected=lambda x: x.reshape(-1, 32).cumsum(1).flatten(),
    slips=(
        (r"__shfl_down_sync", "That takes a value from a higher lane. A running sum needs those of the lower ones."),
        (r"__shfl_up_sync\([^,]*,x\[", "Pass on the sum so far, `value`, and not the number from memory."),
        (r"__shfl_up_sync\([^,]*,value,\d+\)", "The distance doubles from round to round: it is `d`."),
        (r"if\(threadIdx\.x>=d\)", "`threadIdx.x` counts through all warps. Compare the number of the lane."),
        (r"if\(lane>d\)", "Lane d has a lane d places below it, too: lane 0."),
        (r"if\(true\)|if\(1\)", "Lanes below d get their own value back, and would add it to itself."),
    ),
    right="Five rounds, without shared memory and without a barrier.",
)

OWN_BINS = Blank(
    text="""
__global__ void histogram(const int* x, int* bins, int n) {
    __shared__ int own[16];
    if (threadIdx.x < 16) ____;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        ____;
    __syncthreads();
    if (threadIdx.x < 16) ____;
}
""",
    declaration="torch::Tensor run(torch::Tensor x, int64_t blocks);",
    host="""
torch::Tensor run(torch::Tensor x, int64_t blocks) {
    auto bins = torch::zeros({16}, x.options());
    histogram<<<blocks, 64>>>(x.data_ptr<int>(), bins.data_ptr<int>(), x.numel());
    return bins;
}
""",
    calls=lambda: [
        Call(
            f"with {n} numbers and {blocks} block{'s' if blocks > 1 else ''}",
            ((torch.arange(n, dtype=torch.int32) * 7 % 16) // 2, blocks),
        )
        for n, blocks in ((50, 1), (300, 1), (1000, 3))
    ],
    expected=lambda x, blocks: torch.bincount(x, minlength=16).int(),
    slips=(
        (
            r"(own\[x\[i\]\]\+=|\+\+own\[x\[i\]\]|own\[x\[i\]\]\+\+)",
            "Two threads with the same number may both add to the old count. Use `atomicAdd`.",
        ),
        (
            r"\bbins\[threadIdx\.x\]\+=",
            "Other blocks add to the same bins at the same time. Use `atomicAdd`.",
        ),
        (
            r"\)bins\[threadIdx\.x\]=",
            "Each block replaces what the others stored. It has to add to it, with `atomicAdd`.",
        ),
        (r"&own\[threadIdx\.x\],1\)", "The bin is the number that was read, `x[i]`."),
        (r"&own\[i\]", "The bin is the number that was read, `x[i]`."),
        (r"&bins\[threadIdx\.x\],1\)", "Add what the block has counted in this bin, `own[threadIdx.x]`."),
    ),
    right="All but 16 atomics of a block stay in its shared memory.",
)

LANE_COPIES = Blank(
    text="""
// one block of 512 threads and 16 bins, of which each lane of a warp has a copy
__global__ void histogram(const int* x, int* bins, int n) {
    __shared__ int own[16 * 32];
    int t = threadIdx.x, lane = t % 32;
    own[t] = 0;
    __syncthreads();
    for (int i = t; i < n; i += 512) atomicAdd(&own[____], 1);
    __syncthreads();
    if (t < 16) {
        int sum = 0;
        for (int copy = 0; copy < 32; ++copy) sum += own[t * 32 + copy];
        bins[t] = sum;
    }
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto bins = torch::empty({16}, x.options());
    histogram<<<1, 512>>>(x.data_ptr<int>(), bins.data_ptr<int>(), x.numel());
    return bins;
}
""",
    calls=lambda: [
        Call(f"with {n} numbers", ((torch.arange(n, dtype=torch.int32) * 7 % 16) // 2 * 2 + 1,)) for n in (40, 1000)
    ],
    expected=lambda x: torch.bincount(x, minlength=16).int(),
    slips=(
        (
            r"own\[lane\*16\+x\[i\]\]|own\[x\[i\]\+16\*lane\]|own\[16\*lane\+x\[i\]\]|own\[x\[i\]\+lane\*16\]",
            "Then the bins of one lane are neighbours. The loop at the end expects the copies of one bin to be "
            "neighbours: those of bin t begin at `t * 32`.",
        ),
        (
            r"own\[(x\[i\]\*32|32\*x\[i\])\+(t|threadIdx\.x|i)\]",
            "Each bin has 32 copies, from 0 to 31. Which number of the thread lies in this range?",
        ),
        (r"own\[x\[i\]\+lane\]|own\[lane\+x\[i\]\]", "The copies of bin b begin at `b * 32`."),
        (r"own\[x\[i\]\]", "That is a copy of bin 0, or of bin 1. The copies of bin b begin at `b * 32`."),
        (r"own\[(lane|t)\*32\+x\[i\]\]", "`t * 32` is where the copies of *bin* t begin. The bin here is `x[i]`."),
    ),
    right="The remainder of 32 b + lane by 32 is the lane: 32 lanes, 32 banks.",
)

BLANKS = {
    "rounds": ROUNDS,
    "lower_lanes": LOWER_LANES,
    "own_bins": OWN_BINS,
    "lane_copies": LANE_COPIES,
}
