"""Both factors are padded to whole tiles with torch.nn.functional.pad, and the result is cut out of the padded product."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

TILE = 16
ext = load_inline(
    name="whole_tiles",
    cpp_sources="torch::Tensor whole_tiles(torch::Tensor a, torch::Tensor b);",
    cuda_sources=r"""
__global__ void whole_kernel(const float* a, const float* b, float* c, int K, int N) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < K; k += TILE) {
        as[threadIdx.y][threadIdx.x] = a[row * K + k + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * N + column];
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum = fmaf(as[threadIdx.y][i], bs[i][threadIdx.x], sum);
        __syncthreads();
    }
    c[row * N + column] = sum;
}
torch::Tensor whole_tiles(torch::Tensor a, torch::Tensor b) {
    TORCH_CHECK(a.size(0) % TILE == 0 && a.size(1) % TILE == 0 && b.size(1) % TILE == 0);
    auto c = torch::empty({a.size(0), b.size(1)}, a.options());
    whole_kernel<<<dim3(b.size(1) / TILE, a.size(0) / TILE), dim3(TILE, TILE)>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), a.size(1), b.size(1));
    return c;
}
""",
    functions=["whole_tiles"],
    extra_cuda_cflags=[f"-DTILE={TILE}"],
)


def padded(matrix):
    rows, columns = matrix.shape
    return F.pad(matrix, (0, -columns % TILE, 0, -rows % TILE)).contiguous()


class ModelNew(nn.Module):
    def forward(self, A, B):
        return ext.whole_tiles(padded(A), padded(B))[: A.shape[0], : B.shape[1]]
