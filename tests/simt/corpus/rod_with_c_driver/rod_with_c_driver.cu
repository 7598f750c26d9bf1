// title: heat in a rod: two CUDA files with kernels of the same name, the driver and the reference in C
// features: several_files, c_files, colliding_macros, untaken_branches, constant_memory, headers, dynamic_shared_memory
// args: 777 25
// files: driver.c red_black.cu host.c

#include "config.h"
#include "cuda_check.h"

#ifdef WITH_VISUALISATION
#include <GL/glew.h>
#include <cuda_gl_interop.h>
static cudaGraphicsResource *vbo;
#endif

static __constant__ real coefficient;

#if defined(CUDART_VERSION) && CUDART_VERSION < 5000
texture<real, 1, cudaReadModeElementType> old_temperatures;
#define OLD(i) tex1Dfetch(old_temperatures, i)
#else
#define OLD(i) tile[i]
#endif

static __global__ void step(const real *from, real *to, int cells)
{
    extern __shared__ real tile[];
    int i = blockIdx.x * BLOCK + threadIdx.x, first = blockIdx.x * BLOCK - 1, last = MIN(first + BLOCK + 1, cells);
    for (int k = first + (int)threadIdx.x; k <= last; k += BLOCK)
        tile[k - first] = k < 0 ? LEFT : k >= cells ? RIGHT : from[k];
    __syncthreads();
    if (i < cells) {
        int k = i - first;
        to[i] = OLD(k) + coefficient * (OLD(k - 1) - 2 * OLD(k) + OLD(k + 1));
    }
}

void solve_explicit(int cells, int steps, real diffusivity, const real *start, real *end)
{
    real *t[2];
    size_t bytes = cells * sizeof(real);
    for (int k = 0; k < 2; k++) CHECK(cudaMalloc(&t[k], bytes), "no memory for the temperatures");
    CHECK(cudaMemcpyToSymbol(coefficient, &diffusivity, sizeof diffusivity));
    CHECK(cudaMemcpy(t[0], start, bytes, cudaMemcpyHostToDevice));
    for (int s = 0; s < steps; s++) {
#ifdef WITH_VISUALISATION
        cudaGraphicsMapResources(1, &vbo, 0);
        cudaBindTexture(0, old_temperatures, t[s % 2], bytes);
#endif
        step<<<(cells + BLOCK - 1) / BLOCK, BLOCK, (BLOCK + 2) * sizeof(real)>>>(t[s % 2], t[1 - s % 2], cells);
    }
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(end, t[steps % 2], bytes, cudaMemcpyDeviceToHost));
    for (int k = 0; k < 2; k++) CHECK(cudaFree(t[k]));
}

int device_count(void)
{
    int n = 0;
#if 0
    Don't ask for "more than this: it's what the driver says
    cudaThreadSynchronize();
#endif
    return cudaGetDeviceCount(&n) == cudaSuccess ? MAX(n, 0) : 0;
}
