"""Each thread has a piece of 4 by 4 of the product in registers, from tiles that are loaded row by row."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/CUDAException.h>

constexpr int BM = 64, BN = 64, BK = 8, TM = 4, TN = 4;

__global__ void __launch_bounds__(256) gemm_tn(const float* __restrict__ a, const float* __restrict__ b,
                                               float* __restrict__ c, const int m, const int n, const int k) {
    __shared__ float as[BK][BM], bs[BK][BN];
    const int tid = threadIdx.x, ty = tid / (BN / TN), tx = tid % (BN / TN);
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    float acc[TM][TN] = {};
    for (int k0 = 0; k0 < k; k0 += BK) {
        for (int i = tid; i < BK * BM; i += blockDim.x) {
            const int kk = i / BM, mm = i % BM;
            as[kk][mm] = (k0 + kk < k && row0 + mm < m) ? a[(size_t)(k0 + kk) * m + row0 + mm] : 0.f;
        }
        for (int i = tid; i < BK * BN; i += blockDim.x) {
            const int kk = i / BN, nn = i % BN;
            bs[kk][nn] = (k0 + kk < k && col0 + nn < n) ? b[(size_t)(k0 + kk) * n + col0 + nn] : 0.f;
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < BK; ++kk) {
            float ra[TM], rb[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) ra[i] = as[kk][ty * TM + i];
#pragma unroll
            for (int j = 0; j < TN; ++j) rb[j] = bs[kk][tx * TN + j];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) acc[i][j] = fmaf(ra[i], rb[j], acc[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            const int row = row0 + ty * TM + i, col = col0 + tx * TN + j;
            if (row < m && col < n) c[(size_t)row * n + col] = acc[i][j];
        }
}

torch::Tensor gemm(const torch::Tensor& a, const torch::Tensor& b) {
    TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(0) == b.size(0), "shapes do not match");
    const int k = a.size(0), m = a.size(1), n = b.size(1);
    auto c = a.new_empty({m, n});
    auto stream = c10::cuda::getCurrentCUDAStream();
    gemm_tn<<<dim3((n + BN - 1) / BN, (m + BM - 1) / BM), 256, 0, stream.stream()>>>(
        a.const_data_ptr<float>(), b.const_data_ptr<float>(), c.mutable_data_ptr<float>(), m, n, k);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return c;
}
"""

gemm = load_inline("gemm_tn", "torch::Tensor gemm(const torch::Tensor& a, const torch::Tensor& b);", source, functions="gemm")


class ModelNew(nn.Module):
    def forward(self, A, B):
        return gemm.gemm(A.contiguous(), B.contiguous())
