"""attention, step 3: a thread computes several scores and several results from numbers in its registers.

Before, each multiplication read a key or a value from shared memory. Now a thread has four queries and two keys of a
tile: six pairs of halves from shared memory serve sixteen multiplications, and eight numbers serve sixteen of the
second product. The weights go through shared memory, from the threads that have a query's keys to those that have its
results; these are the same sixteen lanes, so that __syncwarp() is enough.

Bought: passes through shared memory fall from 2,180 to 1,008 million, at 7,040 instead of 3,120 million instructions:
halves take up half the room there, but each must be converted before it is multiplied.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor attention_forward(torch::Tensor q, torch::Tensor k, torch::Tensor v, bool causal);"

cuda_source = r"""
#include <cuda_fp16.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int SIDE = 16, THREADS = SIDE * SIDE;
constexpr int MINE = 4;              // queries of a thread
constexpr int QUERIES = MINE * SIDE;  // of a block
constexpr int TILE = 2 * SIDE;       // keys and values in shared memory at a time, two of them a thread's
constexpr int PAD = 2;               // halves after each row there: rows of two threads begin in different banks

__device__ float2 pair(const __half* two) { return __half22float2(*(const __half2*)two); }

// The largest or the sum of 16 neighbouring lanes' values, in each of them.
template <bool largest>
__device__ float combine(float value) {
    for (int step = SIDE / 2; step > 0; step /= 2) {
        const float other = __shfl_xor_sync(0xffffffff, value, step);
        value = largest ? fmaxf(value, other) : value + other;
    }
    return value;
}

// q, k, v, out (heads of all images, length, depth), where depth is at most D; zeros fill the rest.
// blockIdx.y counts the heads, blockIdx.x tiles of QUERIES queries.
template <int D>
__global__ void __launch_bounds__(THREADS)
attention_kernel(const __half* q, const __half* k, const __half* v, __half* out, int length, int depth, float scale,
                 bool causal) {
    __shared__ __align__(4) __half queries[QUERIES][D + PAD], keys[TILE][D + PAD], values[TILE][D + PAD];
    __shared__ float weights[QUERIES][TILE + 1];
    const int64_t head = (int64_t)blockIdx.y * length * depth;
    const int first_query = blockIdx.x * QUERIES;
    const int end = causal ? min(length, first_query + QUERIES) : length;  // no query sees a key from here on
    const int x = threadIdx.x % SIDE, row = threadIdx.x / SIDE * MINE;     // this thread's keys and queries

    for (int i = threadIdx.x; i < QUERIES * D; i += THREADS) {
        const int query = first_query + i / D;
        const bool exists = query < length && i % D < depth;
        queries[i / D][i % D] = exists ? q[head + (int64_t)query * depth + i % D] : __float2half(0.0f);
    }
    float acc[MINE][D / SIDE] = {};
    float top[MINE], sum[MINE] = {};
    for (int r = 0; r < MINE; ++r) top[r] = -INFINITY;

    for (int first = 0; first < end; first += TILE) {
        __syncthreads();  // all are done with the tile before
        for (int i = threadIdx.x; i < TILE * D; i += THREADS) {
            const bool exists = first + i / D < length && i % D < depth;
            const int64_t from = head + (int64_t)(first + i / D) * depth + i % D;
            keys[i / D][i % D] = exists ? k[from] : __float2half(0.0f);
            values[i / D][i % D] = exists ? v[from] : __float2half(0.0f);
        }
        __syncthreads();

        float score[MINE][2] = {};
        for (int d = 0; d < D; d += 2) {
            float2 key[2];
            for (int c = 0; c < 2; ++c) key[c] = pair(&keys[x + c * SIDE][d]);
            for (int r = 0; r < MINE; ++r) {
                const float2 query = pair(&queries[row + r][d]);
                for (int c = 0; c < 2; ++c) score[r][c] += query.x * key[c].x + query.y * key[c].y;
            }
        }
        __syncwarp();  // the warp has read the weights of the tile before
        for (int r = 0; r < MINE; ++r) {
            for (int c = 0; c < 2; ++c) {
                const int key = first + x + c * SIDE;
                const bool seen = key < length && !(causal && key > first_query + row + r);
                score[r][c] = seen ? score[r][c] * scale : -INFINITY;
            }
            // Every query sees key 0, which is in the first tile: from then on the largest is a number.
            const float largest = combine<true>(fmaxf(top[r], fmaxf(score[r][0], score[r][1])));
            const float shrink = expf(top[r] - largest);
            top[r] = largest;
            sum[r] *= shrink;
            for (int n = 0; n < D / SIDE; ++n) acc[r][n] *= shrink;
            for (int c = 0; c < 2; ++c) {
                const float weight = expf(score[r][c] - largest);
                sum[r] += weight;
                weights[row + r][x + c * SIDE] = weight;
            }
        }
        __syncwarp();  // a query's weights are written and read by the same half of a warp
        for (int j = 0; j < TILE; ++j) {
            float value[D / SIDE];
            for (int n = 0; n < D / SIDE; ++n) value[n] = __half2float(values[j][n * SIDE + x]);
            for (int r = 0; r < MINE; ++r) {
                const float weight = weights[row + r][j];
                for (int n = 0; n < D / SIDE; ++n) acc[r][n] += weight * value[n];
            }
        }
    }
    for (int r = 0; r < MINE; ++r) {
        const float all = combine<false>(sum[r]);
        const int query = first_query + row + r;
        if (query >= length) continue;
        for (int n = 0; n < D / SIDE; ++n) {
            const int d = n * SIDE + x;
            if (d < depth) out[head + (int64_t)query * depth + d] = __float2half(acc[r][n] / all);
        }
    }
}

template <int D>
void launch(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, torch::Tensor& out, bool causal) {
    const int length = q.size(2), depth = q.size(3);
    const dim3 blocks((length + QUERIES - 1) / QUERIES, q.size(0) * q.size(1));
    const auto data = [](const torch::Tensor& x) { return (__half*)x.data_ptr<at::Half>(); };
    attention_kernel<D><<<blocks, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data(q), data(k), data(v), data(out), length, depth, 1.0f / std::sqrt((float)depth), causal);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

torch::Tensor attention_forward(torch::Tensor q, torch::Tensor k, torch::Tensor v, bool causal) {
    const std::pair<const char*, torch::Tensor> inputs[] = {{"q", q}, {"k", k}, {"v", v}};
    for (const auto& [name, x] : inputs) {
        TORCH_CHECK(x.is_cuda(), name, " is on ", x.device(), ": move it to the GPU with .cuda()");
        TORCH_CHECK(x.scalar_type() == torch::kHalf, name, " is ", x.scalar_type(), ", not float16: use .half()");
        TORCH_CHECK(x.dim() == 4, name, " has ", x.dim(), " dimensions instead of 4");
        TORCH_CHECK(x.sizes() == q.sizes(), name, " is ", x.sizes(), " and q is ", q.sizes(), ": they must be equal");
    }
    TORCH_CHECK(q.size(0) * q.size(1) <= 65535, "at most 65,535 heads: a grid has no more rows");
    q = q.contiguous();
    k = k.contiguous();
    v = v.contiguous();
    torch::Tensor out = torch::empty_like(q);
    if (out.numel() == 0) return out;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(q.device());
    TORCH_CHECK(q.size(3) <= 128, "a head of ", q.size(3), ": this kernel has room for 128");
    if (q.size(3) <= 32) launch<32>(q, k, v, out, causal);
    else if (q.size(3) <= 64) launch<64>(q, k, v, out, causal);
    else launch<128>(q, k, v, out, causal);
    return out;
}
"""

kernels = load_inline(
    name="attention_03_register_tiles",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["attention_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model: q, k, v (N, heads, length, head_dim) float16 on a GPU -> the same shape."""

    def __init__(self, causal):
        super().__init__()
        self.causal = causal

    def forward(self, q, k, v):
        return kernels.attention_forward(q, k, v, self.causal)
