"""radix_pass, step 4: a thread has 16 neighbours, which it loads at once and counts in counters of its own.

Before, a warp ranked 32 keys with five votes, some twenty instructions and two reads and writes of its counters; that
took longer than the bytes. Now a thread ranks its keys by counting them one after another, as in step 1, in 16
counters of its own. The scan of all counters of the block, digit after digit and thread after thread, tells each thread
where in the block its first key of each digit goes.

A counter has 16 bits, and those of the digits d and d + 8 are in one word: one addition adds both, as no sum exceeds
4,096. A row of these words belongs to all threads, so that each thread counts in a bank of its own. As the keys of a
thread are neighbours, they are loaded 16 bytes at a time; count_kernel loads all before it counts the first.

No step looks back, as the last ones of scan and compaction do: where a digit begins is known only when all keys with
lower digits are counted, so that one pass over the keys is not enough. (Where several digits are sorted by, one pass
counts them all: Adinets and Merrill, "Onesweep", 2022.)

Bought: a third fewer instructions in scatter_kernel, for a third more wavefronts of shared memory.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor radix_pass_forward(torch::Tensor keys, int64_t shift);"

cuda_source = r"""
#include <climits>
#include <cstdint>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int WARP = 32;
constexpr int DIGITS = 16;    // values of a digit of 4 bits
constexpr int HALF = DIGITS / 2;
constexpr int THREADS = 256;  // a block
constexpr int WARPS = THREADS / WARP;
constexpr int MANY = 16;              // keys of a thread, which are neighbours
constexpr int PART = THREADS * MANY;  // keys of a block
constexpr int SCANNED = 1024;         // threads of a block that scans counts

static_assert(WARPS == HALF && THREADS == 8 * WARP, "each warp scans a row of counters, each lane 8 of them");

// The counters of a thread for the digits d and d + 8.
union Pair {
    unsigned both;
    unsigned short of[2];
};

__device__ int find_digit(int key, int shift) { return (key >> shift) & (DIGITS - 1); }

// How many keys the block's part has: PART, or fewer at the end.
__device__ int count_own(int64_t length) { return min((int64_t)PART, length - (int64_t)blockIdx.x * PART); }

// Loads the thread's keys of the part (own), 0 past its end. ALIGNED: whether part begins at a multiple of 16 bytes.
template <bool ALIGNED>
__device__ __forceinline__ void load(const int* part, int own, int (&key)[MANY]) {
    const int first = threadIdx.x * MANY;
#pragma unroll
    for (int k = 0; k < MANY; k += 4) {
        if (ALIGNED && first + k + 4 <= own) {
            const int4 four = *reinterpret_cast<const int4*>(part + first + k);
            key[k] = four.x, key[k + 1] = four.y, key[k + 2] = four.z, key[k + 3] = four.w;
        } else {
#pragma unroll
            for (int j = k; j < k + 4; ++j) key[j] = first + j < own ? part[first + j] : 0;
        }
    }
}

// counts[d * blocks + b] = how many keys of block b's part of keys (length) have the digit d.
template <bool ALIGNED>
__global__ void count_kernel(const int* keys, int* counts, int64_t length, int shift) {
    __shared__ int counted[DIGITS];
    const int own = count_own(length), first = threadIdx.x * MANY;
    int key[MANY];
    load<ALIGNED>(keys + (int64_t)blockIdx.x * PART, own, key);
    if (threadIdx.x < DIGITS) counted[threadIdx.x] = 0;
    __syncthreads();  // all counters are 0
#pragma unroll
    for (int k = 0; k < MANY; ++k) {
        if (first + k < own) atomicAdd(&counted[find_digit(key[k], shift)], 1);
    }
    __syncthreads();  // all keys are counted
    if (threadIdx.x < DIGITS) counts[threadIdx.x * gridDim.x + blockIdx.x] = counted[threadIdx.x];
}

// begins[d * (blocks + 1) + b] = how many keys of the blocks before b have the digit d, for b from 0 to blocks: the
// last one is the number of all keys with the digit d. Block d adds up the counts of the digit d.
__global__ void scan_kernel(const int* counts, int* begins, int blocks) {
    __shared__ int ends[SCANNED / 32], total;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    counts += (int64_t)blockIdx.x * blocks;
    begins += (int64_t)blockIdx.x * (blocks + 1);
    if (threadIdx.x == 0) total = 0;
    for (int start = 0; start < blocks; start += SCANNED) {
        const int b = start + threadIdx.x, own = b < blocks ? counts[b] : 0;
        int upto = own;
        for (int distance = 1; distance < 32; distance *= 2) {
            const int below = __shfl_up_sync(0xffffffff, upto, distance);
            if (lane >= distance) upto += below;
        }
        if (lane == 31) ends[warp] = upto;
        __syncthreads();  // the sums of the warps, and the total so far, are there
        int before = total;
        for (int lower = 0; lower < warp; ++lower) before += ends[lower];
        if (b < blocks) begins[b] = before + upto - own;
        __syncthreads();  // all have read them
        if (threadIdx.x == SCANNED - 1) total = before + upto;
    }
    __syncthreads();
    if (threadIdx.x == 0) begins[blocks] = total;
}

// Turns the counters of all threads into the places in the block of their first keys of each digit. All threads of the
// block must call it.
__device__ __forceinline__ void scan_counters(Pair (&counters)[HALF][THREADS]) {
    __shared__ unsigned rows[HALF];  // the sums of the rows
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    uint4* const words = reinterpret_cast<uint4*>(&counters[warp][lane * 8]);  // 8 neighbouring threads' counters
    const uint4 low = words[0], high = words[1];
    const unsigned sum = low.x + low.y + low.z + low.w + high.x + high.y + high.z + high.w;
    unsigned upto = sum;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        const unsigned below = __shfl_up_sync(0xffffffff, upto, distance);
        if (lane >= distance) upto += below;
    }
    if (lane == WARP - 1) rows[warp] = upto;
    __syncthreads();  // all rows have their sum
    unsigned all = 0, before = upto - sum;
#pragma unroll
    for (int row = 0; row < HALF; ++row) {
        if (row < warp) before += rows[row];
        all += rows[row];
    }
    before += all << 16;  // the digits from 8 on come after all keys with the digits up to 7
    uint4 a, b;
    a.x = before, a.y = a.x + low.x, a.z = a.y + low.y, a.w = a.z + low.z;
    b.x = a.w + low.w, b.y = b.x + high.x, b.z = b.y + high.y, b.w = b.z + high.z;
    words[0] = a, words[1] = b;
    __syncthreads();  // the places are there
}

// The place in y of the block's first key with the digit that is the lane's number. All lanes of one warp must call it.
__device__ int find_begin(const int* begins) {
    const int blocks = gridDim.x, lane = threadIdx.x % WARP;
    const int all = lane < DIGITS ? begins[lane * (blocks + 1) + blocks] : 0;
    int upto = all;  // keys of all blocks with this digit or a lower one
    for (int distance = 1; distance < DIGITS; distance *= 2) {
        const int below = __shfl_up_sync(0xffffffff, upto, distance);
        if (lane >= distance) upto += below;
    }
    return upto - all + (lane < DIGITS ? begins[lane * (blocks + 1) + blockIdx.x] : 0);
}

// y (length) = keys in the order of their digits. begins: from scan_kernel.
template <bool ALIGNED>
__global__ void scatter_kernel(const int* keys, const int* begins, int* y, int64_t length, int shift) {
    __shared__ __align__(16) Pair counters[HALF][THREADS];
    __shared__ int sorted[PART];
    __shared__ int move[DIGITS];  // from the place in the block to that in y, for each digit
    const int own = count_own(length), first = threadIdx.x * MANY;
    int key[MANY], rank[MANY];
    load<ALIGNED>(keys + (int64_t)blockIdx.x * PART, own, key);
#pragma unroll
    for (int row = 0; row < HALF; ++row) counters[row][threadIdx.x].both = 0;
#pragma unroll
    for (int k = 0; k < MANY; ++k) {
        const int digit = find_digit(key[k], shift);
        if (first + k < own) rank[k] = counters[digit % HALF][threadIdx.x].of[digit / HALF]++;
    }
    __syncthreads();  // all threads have counted
    scan_counters(counters);
    if (threadIdx.x < WARP) {
        const int begin = find_begin(begins), d = threadIdx.x;
        if (d < DIGITS) move[d] = begin - counters[d % HALF][0].of[d / HALF];
    }
#pragma unroll
    for (int k = 0; k < MANY; ++k) {
        const int digit = find_digit(key[k], shift);
        if (first + k < own) sorted[counters[digit % HALF][threadIdx.x].of[digit / HALF] + rank[k]] = key[k];
    }
    __syncthreads();  // the keys are sorted
#pragma unroll
    for (int row = 0; row < MANY; ++row) {
        const int place = row * THREADS + threadIdx.x;
        if (place < own) {
            const int next = sorted[place];
            y[move[find_digit(next, shift)] + place] = next;
        }
    }
}

torch::Tensor radix_pass_forward(torch::Tensor keys, int64_t shift) {
    TORCH_CHECK(keys.is_cuda(), "keys is on ", keys.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(keys.scalar_type() == torch::kInt32, "keys is ", keys.scalar_type(), ", not int32: use .int()");
    TORCH_CHECK(keys.dim() == 1, "keys has ", keys.dim(), " dimensions instead of 1");
    TORCH_CHECK(keys.numel() <= INT_MAX, "keys is too long for places of 32 bits");
    TORCH_CHECK(0 <= shift && shift <= 28, "shift is ", shift, ", not a number from 0 to 28");
    keys = keys.contiguous();

    torch::Tensor y = torch::empty_like(keys);
    if (keys.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(keys.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t blocks = (keys.numel() + PART - 1) / PART;
    torch::Tensor counts = torch::empty({DIGITS, blocks}, keys.options());
    torch::Tensor begins = torch::empty({DIGITS, blocks + 1}, keys.options());
    const bool aligned = reinterpret_cast<uintptr_t>(keys.data_ptr<int>()) % 16 == 0;
    const auto count = aligned ? count_kernel<true> : count_kernel<false>;
    const auto scatter = aligned ? scatter_kernel<true> : scatter_kernel<false>;
    count<<<blocks, THREADS, 0, stream>>>(keys.data_ptr<int>(), counts.data_ptr<int>(), keys.numel(), shift);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    scan_kernel<<<DIGITS, SCANNED, 0, stream>>>(counts.data_ptr<int>(), begins.data_ptr<int>(), blocks);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    scatter<<<blocks, THREADS, 0, stream>>>(
        keys.data_ptr<int>(), begins.data_ptr<int>(), y.data_ptr<int>(), keys.numel(), shift);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="radix_pass_04_counters_per_thread",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["radix_pass_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model: keys (length,) int32 on a GPU -> (length,)."""

    def __init__(self, shift):
        super().__init__()
        self.shift = shift

    def forward(self, keys):
        return kernels.radix_pass_forward(keys, self.shift)
