"""Lesson 3: a thread's share of a sum, the tree's step with its barrier, a shuffle, and an atomic."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call


def _numbers(n: int) -> torch.Tensor:
    return torch.arange(n) % 5 + 1.0


TREE = Blank(
    text="""
__global__ void tree(const float* x, float* total) {
    __shared__ float partial[128];
    partial[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += ____;
        ____;
    }
    if (threadIdx.x == 0) total[0] = partial[0];
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto total = torch::empty({1}, x.options());
    tree<<<1, 128>>>(x.data_ptr<float>(), total.data_ptr<float>());
    return total;
}
""",
    calls=lambda: [Call("with 128 numbers", (_numbers(128),))],
    expected=lambda x: x.sum().reshape(1),
    slips=(
        (r"__syncwarp", "In the first steps the two numbers belong to different warps: the whole block has to wait."),
        (r"\+=partial\[threadIdx\.x\+1\]|\+=partial\[2\*", "The other number lies `half` places further."),
        (
            r"\+=partial\[half\]",
            "Then all threads add the same number: each has its own partner, `half` places further.",
        ),
        (r"\+=x\[", "`x` has the numbers from the beginning. The sums so far are in `partial`."),
    ),
    right="Seven steps add 128 numbers, with a barrier after each.",
)

SHUFFLE = Blank(
    text="""
__global__ void sum_of_warp(const float* x, float* total) {
    float value = x[threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2)
        value += ____;
    if (threadIdx.x == 0) total[0] = value;
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto total = torch::empty({1}, x.options());
    sum_of_warp<<<1, 32>>>(x.data_ptr<float>(), total.data_ptr<float>());
    return total;
}
""",
    calls=lambda: [Call("with 32 numbers", (_numbers(32),))],
    expected=lambda x: x.sum().reshape(1),
    slips=(
        (r"__shfl_down_sync\([^,]*,value,\d+\)", "The distance halves from step to step: it is `offset`."),
        (r"__shfl_down_sync\([^,]*,x\[", "Pass on the sum so far, `value`, and not the number from memory."),
        (r"__shfl_up_sync", "That takes a value from a lower lane. Lane 0 needs those of the higher ones."),
        (
            r"x\[threadIdx\.x\+offset\]",
            "`x` has the numbers from the beginning. The sum so far is in the other lane's `value`.",
        ),
    ),
    right="No shared memory and no barrier: the values move from register to register.",
)

SHARE = Blank(
    text="""
__global__ void shares(const float* x, float* sums, int n) {
    float sum = 0.0f;
    for (int i = ____; i < n; i += ____)
        sum += x[i];
    sums[threadIdx.x] = sum;
}
""",
    declaration="torch::Tensor run(torch::Tensor x, int64_t threads);",
    host="""
torch::Tensor run(torch::Tensor x, int64_t threads) {
    auto sums = torch::empty({threads}, x.options());
    shares<<<1, threads>>>(x.data_ptr<float>(), sums.data_ptr<float>(), x.numel());
    return sums;
}
""",
    calls=lambda: [
        Call(f"with {n} numbers and {threads} threads", (_numbers(n), threads))
        for n, threads in ((100, 32), (64, 64), (10, 32))
    ],
    expected=lambda x, threads: torch.stack([x[first::threads].sum() for first in range(threads)]),
    slips=(
        (r"inti=0;", "Then each thread begins at the same number, and all of them add up the same ones."),
        (
            r"i\+=1\)|i\+=1;|\+=32",
            "Thread t is to take the numbers t, t + threads, t + 2 · threads, …: step by the block's size, "
            "`blockDim.x`.",
        ),
        (
            r"inti=threadIdx\.x\*",
            "Then a thread's numbers are neighbours, and those of a warp are far apart. Begin at `threadIdx.x`.",
        ),
        (r"gridDim\.x\)", "`gridDim.x` is the number of blocks; step by the number of threads in the block."),
    ),
    right="Neighbouring threads read neighbouring numbers, and any number of threads adds up any amount.",
)

ATOMIC = Blank(
    text="""
__global__ void add_blocks(const float* x, float* total) {
    float value = x[blockIdx.x * 32 + threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffff, value, offset);
    if (____) ____;
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto total = torch::zeros({1}, x.options());
    add_blocks<<<x.numel() / 32, 32>>>(x.data_ptr<float>(), total.data_ptr<float>());
    return total;
}
""",
    calls=lambda: [Call("with 4 blocks of 32 threads", (_numbers(128),))],
    expected=lambda x: x.sum().reshape(1),
    slips=(
        (
            r"(\*total|total\[0\])\+=",
            "Several blocks read, add and store at the same time, and overwrite each other's sums: use `atomicAdd`.",
        ),
        (
            r"(\*total|total\[0\])=",
            "Each block replaces what the others stored. It has to add to it, with `atomicAdd`.",
        ),
        (r"if\(true\)|if\(1\)|if\(threadIdx\.x<32\)", "Only lane 0 has the sum of the whole warp."),
        (r"if\(blockIdx\.x==0", "Then the sums of the other blocks are lost. One thread of *each* block adds."),
        (r"atomicAdd\(total,x\[", "That adds the thread's own number, and not the block's sum."),
    ),
    right="One atomic per block: few enough that no block waits for long.",
)

BLANKS = {"tree": TREE, "shuffle": SHUFFLE, "share": SHARE, "atomic": ATOMIC}
