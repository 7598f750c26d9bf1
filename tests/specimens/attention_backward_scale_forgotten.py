"""The gradient of the keys lacks the scale that their scores have."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
std::vector<torch::Tensor> attention_forward(torch::Tensor q, torch::Tensor k, torch::Tensor v, bool causal);
std::vector<torch::Tensor> attention_backward(torch::Tensor go, torch::Tensor q, torch::Tensor k, torch::Tensor v,
                                              torch::Tensor out, torch::Tensor lse, bool causal);
"""

cuda_source = r"""
#include <cuda_fp16.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int ROWS = 64;  // of a block, one a thread: queries or keys
constexpr int TILE = 32;  // rows of the other side in shared memory at a time

// All heads of all images: q, k, v, out, go, gq, gk, gv are (heads, length, depth), lse and dot are (heads, length).
// go is the gradient of out, and so on. query_kernel stores dot, which the other two read.
struct Heads {
    const __half *q, *k, *v, *out, *go;
    __half *gq, *gk, *gv;
    const float* lse;
    float* dot;
    int length, depth;
    float scale;
    bool causal;
};

// One row of depth halves as D floats; zeros follow it, and stand for a row that does not exist.
template <int D>
__device__ void fetch_row(float row[D], const __half* from, int depth, bool exists) {
    for (int d = 0; d < D; ++d) row[d] = exists && d < depth ? __half2float(from[d]) : 0.0f;
}

// count rows of depth halves as rows of D floats, fetched by all threads of the block.
template <int D>
__device__ void fetch_tile(float tile[TILE][D], const __half* from, int count, int depth) {
    for (int i = threadIdx.x; i < count * D; i += ROWS) {
        tile[i / D][i % D] = i % D < depth ? __half2float(from[(int64_t)(i / D) * depth + i % D]) : 0.0f;
    }
}

template <int D>
__device__ float multiply(const float a[D], const float b[D]) {
    float sum = 0.0f;
    for (int d = 0; d < D; ++d) sum += a[d] * b[d];
    return sum;
}

template <int D>
__device__ void store_row(__half* to, const float row[D], int depth) {
    for (int d = 0; d < depth; ++d) to[d] = __float2half(row[d]);
}

// blockIdx.y counts the heads, blockIdx.x tiles of ROWS queries.
template <int D>
__global__ void __launch_bounds__(ROWS)
attention_kernel(const __half* q, const __half* k, const __half* v, __half* out, float* lse, int length, int depth,
                 float scale, bool causal) {
    __shared__ float keys[TILE][D], values[TILE][D];
    const int64_t head = (int64_t)blockIdx.y * length * depth;
    const int query = blockIdx.x * ROWS + threadIdx.x;
    const bool exists = query < length;  // the others fetch as well, and come to each barrier
    const int end = causal ? min(length, (int)(blockIdx.x + 1) * ROWS) : length;  // no query sees a key from here on

    float mine[D], acc[D] = {};
    fetch_row<D>(mine, q + head + (int64_t)query * depth, depth, exists);
    float top = -INFINITY, sum = 0.0f;
    for (int first = 0; first < end; first += TILE) {
        const int count = min(TILE, end - first);
        __syncthreads();  // all are done with the tile before
        fetch_tile<D>(keys, k + head + (int64_t)first * depth, count, depth);
        fetch_tile<D>(values, v + head + (int64_t)first * depth, count, depth);
        __syncthreads();
        const int seen = causal ? min(count, query - first + 1) : count;
        for (int j = 0; j < seen; ++j) {
            const float score = multiply<D>(mine, keys[j]) * scale;
            if (score > top) {  // what was added up so far shrinks
                const float shrink = expf(top - score);
                sum *= shrink;
                for (int d = 0; d < D; ++d) acc[d] *= shrink;
                top = score;
            }
            const float weight = expf(score - top);
            sum += weight;
            for (int d = 0; d < D; ++d) acc[d] += weight * values[j][d];
        }
    }
    if (!exists) return;
    for (int d = 0; d < D; ++d) acc[d] /= sum;
    store_row<D>(out + head + (int64_t)query * depth, acc, depth);
    lse[(int64_t)blockIdx.y * length + query] = top + logf(sum);
}

// gq and dot. blockIdx.y counts the heads, blockIdx.x tiles of ROWS queries.
template <int D>
__global__ void __launch_bounds__(ROWS) query_kernel(Heads heads) {
    __shared__ float keys[TILE][D], values[TILE][D];
    const int length = heads.length, depth = heads.depth, query = blockIdx.x * ROWS + threadIdx.x;
    const bool exists = query < length;
    const int64_t head = (int64_t)blockIdx.y * length * depth, mine = head + (int64_t)query * depth;
    const int end = heads.causal ? min(length, (int)(blockIdx.x + 1) * ROWS) : length;

    float gradient[D], acc[D];  // this query's rows: of go, and for a moment of out
    fetch_row<D>(gradient, heads.go + mine, depth, exists);
    fetch_row<D>(acc, heads.out + mine, depth, exists);
    const float dot = multiply<D>(gradient, acc);
    const int64_t number = (int64_t)blockIdx.y * length + query;
    if (exists) heads.dot[number] = dot;
    const float lse = exists ? heads.lse[number] : 0.0f;

    float q[D];
    fetch_row<D>(q, heads.q + mine, depth, exists);
    for (int d = 0; d < D; ++d) acc[d] = 0.0f;
    for (int first = 0; first < end; first += TILE) {
        const int count = min(TILE, end - first);
        __syncthreads();  // all are done with the tile before
        fetch_tile<D>(keys, heads.k + head + (int64_t)first * depth, count, depth);
        fetch_tile<D>(values, heads.v + head + (int64_t)first * depth, count, depth);
        __syncthreads();
        const int seen = heads.causal ? min(count, query - first + 1) : count;
        for (int j = 0; j < seen; ++j) {
            const float weight = expf(multiply<D>(q, keys[j]) * heads.scale - lse);
            const float slope = weight * (multiply<D>(gradient, values[j]) - dot);
            for (int d = 0; d < D; ++d) acc[d] += slope * keys[j][d];
        }
    }
    if (!exists) return;
    for (int d = 0; d < D; ++d) acc[d] *= heads.scale;
    store_row<D>(heads.gq + mine, acc, depth);
}

// gk. blockIdx.y counts the heads, blockIdx.x tiles of ROWS keys.
template <int D>
__global__ void __launch_bounds__(ROWS) key_kernel(Heads heads) {
    __shared__ float queries[TILE][D], gradients[TILE][D], lse[TILE], dot[TILE];  // gradients: rows of go
    const int length = heads.length, depth = heads.depth, key = blockIdx.x * ROWS + threadIdx.x;
    const bool exists = key < length;
    const int64_t head = (int64_t)blockIdx.y * length * depth, mine = head + (int64_t)key * depth;

    float k[D], v[D], acc[D] = {};
    fetch_row<D>(k, heads.k + mine, depth, exists);
    fetch_row<D>(v, heads.v + mine, depth, exists);
    for (int first = heads.causal ? blockIdx.x * ROWS : 0; first < length; first += TILE) {
        const int count = min(TILE, length - first);
        const int64_t number = (int64_t)blockIdx.y * length + first;
        __syncthreads();  // all are done with the tile before
        fetch_tile<D>(queries, heads.q + head + (int64_t)first * depth, count, depth);
        fetch_tile<D>(gradients, heads.go + head + (int64_t)first * depth, count, depth);
        if (threadIdx.x < count) {
            lse[threadIdx.x] = heads.lse[number + threadIdx.x];
            dot[threadIdx.x] = heads.dot[number + threadIdx.x];
        }
        __syncthreads();
        const int unseen = heads.causal ? max(0, key - first) : 0;
        for (int i = unseen; i < count; ++i) {
            const float weight = expf(multiply<D>(k, queries[i]) * heads.scale - lse[i]);
            const float slope = weight * (multiply<D>(v, gradients[i]) - dot[i]);
            for (int d = 0; d < D; ++d) acc[d] += slope * queries[i][d];
        }
    }
    if (!exists) return;
    store_row<D>(heads.gk + mine, acc, depth);
}

// gv. blockIdx.y counts the heads, blockIdx.x tiles of ROWS keys.
template <int D>
__global__ void __launch_bounds__(ROWS) value_kernel(Heads heads) {
    __shared__ float queries[TILE][D], gradients[TILE][D], lse[TILE];
    const int length = heads.length, depth = heads.depth, key = blockIdx.x * ROWS + threadIdx.x;
    const bool exists = key < length;
    const int64_t head = (int64_t)blockIdx.y * length * depth, mine = head + (int64_t)key * depth;

    float k[D], acc[D] = {};
    fetch_row<D>(k, heads.k + mine, depth, exists);
    for (int first = heads.causal ? blockIdx.x * ROWS : 0; first < length; first += TILE) {
        const int count = min(TILE, length - first);
        __syncthreads();  // all are done with the tile before
        fetch_tile<D>(queries, heads.q + head + (int64_t)first * depth, count, depth);
        fetch_tile<D>(gradients, heads.go + head + (int64_t)first * depth, count, depth);
        if (threadIdx.x < count) lse[threadIdx.x] = heads.lse[(int64_t)blockIdx.y * length + first + threadIdx.x];
        __syncthreads();
        const int unseen = heads.causal ? max(0, key - first) : 0;
        for (int i = unseen; i < count; ++i) {
            const float weight = expf(multiply<D>(k, queries[i]) * heads.scale - lse[i]);
            for (int d = 0; d < D; ++d) acc[d] += weight * gradients[i][d];
        }
    }
    if (exists) store_row<D>(heads.gv + mine, acc, depth);
}

static __half* data(const torch::Tensor& x) { return (__half*)x.data_ptr<at::Half>(); }

// Calls launch with D, the smallest depth that there is a kernel for, as its type's value.
template <typename Launch>
void for_depth(int64_t depth, Launch launch) {
    if (depth <= 32) launch(std::integral_constant<int, 32>());
    else if (depth <= 64) launch(std::integral_constant<int, 64>());
    else launch(std::integral_constant<int, 128>());
}

// Returns out and lse (N, heads, length).
std::vector<torch::Tensor> attention_forward(torch::Tensor q, torch::Tensor k, torch::Tensor v, bool causal) {
    q = q.contiguous();
    k = k.contiguous();
    v = v.contiguous();
    const int64_t length = q.size(2), depth = q.size(3);
    torch::Tensor out = torch::empty_like(q);
    torch::Tensor lse = torch::empty({q.size(0), q.size(1), length}, q.options().dtype(torch::kFloat));
    if (out.numel() == 0) return {out, lse};  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(q.device());
    const dim3 blocks((length + ROWS - 1) / ROWS, q.size(0) * q.size(1));
    for_depth(depth, [&](auto width) {
        attention_kernel<width.value><<<blocks, ROWS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            data(q), data(k), data(v), data(out), lse.data_ptr<float>(), length, depth, 1.0f / std::sqrt((float)depth),
            causal);
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return {out, lse};
}

// out, lse: what forward made. Returns gq, gk, gv.
std::vector<torch::Tensor> attention_backward(torch::Tensor go, torch::Tensor q, torch::Tensor k, torch::Tensor v,
                                              torch::Tensor out, torch::Tensor lse, bool causal) {
    go = go.contiguous();  // sum().backward() sends one number with strides of 0
    q = q.contiguous();
    k = k.contiguous();
    v = v.contiguous();
    const int64_t length = q.size(2), depth = q.size(3);
    torch::Tensor gq = torch::empty_like(q), gk = torch::empty_like(q), gv = torch::empty_like(q);
    if (q.numel() == 0) return {gq, gk, gv};

    const c10::cuda::CUDAGuard guard(q.device());
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    torch::Tensor dot = torch::empty_like(lse);
    const float scale = 1.0f / std::sqrt((float)depth);
    const Heads heads = {data(q), data(k), data(v), data(out), data(go), data(gq), data(gk), data(gv),
                         lse.data_ptr<float>(), dot.data_ptr<float>(), (int)length, (int)depth, scale, causal};
    const dim3 blocks((length + ROWS - 1) / ROWS, q.size(0) * q.size(1));
    for_depth(depth, [&](auto width) {
        query_kernel<width.value><<<blocks, ROWS, 0, stream>>>(heads);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        key_kernel<width.value><<<blocks, ROWS, 0, stream>>>(heads);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        value_kernel<width.value><<<blocks, ROWS, 0, stream>>>(heads);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return {gq, gk, gv};
}
"""

kernels = load_inline(
    name="attention_backward",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["attention_forward", "attention_backward"],
)


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal):
        out, lse = kernels.attention_forward(q, k, v, causal)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.causal = causal
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, go):
        return *kernels.attention_backward(go, *ctx.saved_tensors, ctx.causal), None  # causal has no gradient


class ModelNew(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal = causal

    def forward(self, q, k, v):
        return Attention.apply(q, k, v, self.causal)
