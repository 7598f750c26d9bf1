// title: edges of an image, with a reference in C under OpenMP and the image in C++
// features: several_files, c_files, openmp, shared_memory, atomics, pitched_memory, headers
// files: reference.c picture.cpp
// flags: -fopenmp

#include "gradient.h"

#include <omp.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {
constexpr int TILE_W = 16, TILE_H = 8;

#define RETURN_ON_ERROR(call)                                                   \
    if (cudaError_t status_ = (call); status_ != cudaSuccess) {                 \
        std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status_));   \
        return 1;                                                               \
    }

__device__ int clampIndex(int i, int n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

__global__ void edges(const uint8_t *rgb, size_t pitch, int width, int height, uint8_t *out,
                      unsigned long long *histogram) {
    __shared__ int grey[TILE_H + 2 * MASK_RADIUS][TILE_W + 2 * MASK_RADIUS];
    __shared__ unsigned counts[256];
    const int thread = threadIdx.y * TILE_W + threadIdx.x, threads = TILE_W * TILE_H;
    for (int i = thread; i < 256; i += threads) counts[i] = 0;
    for (int i = thread; i < (TILE_W + 2) * (TILE_H + 2); i += threads) {
        const int tx = i % (TILE_W + 2), ty = i / (TILE_W + 2);
        const int x = clampIndex(int(blockIdx.x) * TILE_W + tx - MASK_RADIUS, width);
        const int y = clampIndex(int(blockIdx.y) * TILE_H + ty - MASK_RADIUS, height);
        const uint8_t *p = rgb + y * pitch + 3 * x;
        grey[ty][tx] = GREY(p[0], p[1], p[2]);
    }
    __syncthreads();
    const int x = blockIdx.x * TILE_W + threadIdx.x, y = blockIdx.y * TILE_H + threadIdx.y;
    if (x < width && y < height) {
        const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
        const int gx = grey[ty - 1][tx + 1] + 2 * grey[ty][tx + 1] + grey[ty + 1][tx + 1]
                     - grey[ty - 1][tx - 1] - 2 * grey[ty][tx - 1] - grey[ty + 1][tx - 1];
        const int gy = grey[ty + 1][tx - 1] + 2 * grey[ty + 1][tx] + grey[ty + 1][tx + 1]
                     - grey[ty - 1][tx - 1] - 2 * grey[ty - 1][tx] - grey[ty - 1][tx + 1];
        const int edge = min((abs(gx) + abs(gy)) / 2, 255);
        out[y * width + x] = static_cast<uint8_t>(edge);
        atomicAdd(&counts[edge], 1u);
    }
    __syncthreads();
    for (int i = thread; i < 256; i += threads)
        if (counts[i]) atomicAdd(&histogram[i], static_cast<unsigned long long>(counts[i]));
}
}  // namespace

extern "C" int gradient_cuda(const struct image *in, uint8_t *out, uint64_t histogram[256]) {
    uint8_t *d_rgb, *d_out;
    unsigned long long *d_histogram;
    size_t pitch;
    const size_t pixels = size_t(in->width) * in->height;
    RETURN_ON_ERROR(cudaMallocPitch(&d_rgb, &pitch, 3 * in->width, in->height));
    RETURN_ON_ERROR(cudaMalloc(&d_out, pixels));
    RETURN_ON_ERROR(cudaMalloc(&d_histogram, 256 * sizeof(*d_histogram)));
    RETURN_ON_ERROR(cudaMemset(d_histogram, 0, 256 * sizeof(*d_histogram)));
    RETURN_ON_ERROR(cudaMemcpy2D(d_rgb, pitch, in->pixels, in->stride, 3 * in->width, in->height, cudaMemcpyHostToDevice));
    edges<<<dim3((in->width + TILE_W - 1) / TILE_W, (in->height + TILE_H - 1) / TILE_H), dim3(TILE_W, TILE_H)>>>(
        d_rgb, pitch, in->width, in->height, d_out, d_histogram);
    RETURN_ON_ERROR(cudaGetLastError());
    RETURN_ON_ERROR(cudaMemcpy(out, d_out, pixels, cudaMemcpyDeviceToHost));
    RETURN_ON_ERROR(cudaMemcpy(histogram, d_histogram, 256 * sizeof(*d_histogram), cudaMemcpyDeviceToHost));
    RETURN_ON_ERROR(cudaFree(d_rgb));
    RETURN_ON_ERROR(cudaFree(d_out));
    RETURN_ON_ERROR(cudaFree(d_histogram));
    return 0;
}

int main() {
    int wrong = 0;
    // each thread of the host has an image of its own
#pragma omp parallel for num_threads(2) reduction(+ : wrong) ordered schedule(static, 1)
    for (int k = 0; k < 3; ++k) {
        Picture picture(61 + 10 * k, 47 - k);
        picture.paint(17 * k);
        const size_t n = size_t(picture.width) * picture.height;
        std::vector<uint8_t> gpu(n), cpu(n);
        uint64_t gpu_histogram[256], cpu_histogram[256];
        wrong += gradient_cuda(&picture, gpu.data(), gpu_histogram);
        wrong += gradient_reference(&picture, cpu.data(), cpu_histogram) < 1;
        for (size_t i = 0; i < n; ++i) wrong += gpu[i] != cpu[i];
        wrong += std::memcmp(gpu_histogram, cpu_histogram, sizeof gpu_histogram) != 0;
#pragma omp ordered
        std::printf("%d x %d: %" PRIu64 " flat pixels, %" PRIu64 " of the strongest edges\n", picture.width, picture.height,
                    gpu_histogram[0], gpu_histogram[255]);
    }
    std::puts(wrong ? "FAILED" : "PASSED");
    return wrong ? 1 : 0;
}
