// title: each block finds its minimum and notes the cycles that it took, as the clock samples do
// features: clocks, shared_word_order, spaced_launches, dynamic_shared_memory, reductions

// System includes
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// CUDA runtime
#include <cuda_runtime.h>

#define NUM_BLOCKS    24
#define NUM_THREADS   128

#define SAFE(expr)                                                        \
    do {                                                                  \
        cudaError_t rc = (expr);                                          \
        if (rc != cudaSuccess) {                                          \
            fprintf(stderr, "%s failed: %s\n", #expr, cudaGetErrorString(rc)); \
            exit(EXIT_FAILURE);                                           \
        }                                                                 \
    } while (0)

// Every block gets 2 * blockDim.x values, leaves the least of them in output[blockIdx.x], and the clock before and
// after in timer[blockIdx.x] and timer[blockIdx.x + gridDim.x].
__global__ static void minimum_with_clock(const int *input, int *output, clock_t *timer)
{
    extern int __shared__ least[];

    const int tid = threadIdx.x;
    const int bid = blockIdx.x;

    if (tid == 0) timer[bid] = clock();

    const int *mine = input + 2 * bid * blockDim.x;
    least[tid]              = mine[tid];
    least[tid + blockDim.x] = mine[tid + blockDim.x];

    for (int d = blockDim.x; d > 0; d /= 2)
    {
        __syncthreads();

        if (tid < d)
        {
            int a = least[tid];
            int b = least[tid + d];
            if (b < a) least[tid] = b;
        }
    }

    if (tid == 0) output[bid] = least[0];

    __syncthreads();

    if (tid == 0) timer[bid + gridDim.x] = clock();
}

// The same with the 64-bit counter, and the cycles of each warp
__global__ static void maximum_with_clock64(const int *input, int *output, long long *cycles)
{
    long long begin = clock64();
    int most = max(input[2 * blockIdx.x * blockDim.x + threadIdx.x],
                   input[(2 * blockIdx.x + 1) * blockDim.x + threadIdx.x]);
    for (int lane = 16; lane; lane >>= 1)
        most = max(most, __shfl_xor_sync(~0u, most, lane));
    if (threadIdx.x % 32 == 0) {
        int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
        output[warp] = most;
        cycles[warp] = clock64() - begin;
    }
}

int main(int argc, char **argv)
{
    const int count = NUM_BLOCKS * NUM_THREADS * 2, warps = NUM_BLOCKS * NUM_THREADS / 32;
    static int input[NUM_BLOCKS * NUM_THREADS * 2], output[NUM_BLOCKS], tops[NUM_BLOCKS * NUM_THREADS / 32];
    static clock_t timer[NUM_BLOCKS * 2];
    static long long cycles[NUM_BLOCKS * NUM_THREADS / 32];
    int *dinput = NULL, *doutput = NULL, *dtops = NULL;
    clock_t *dtimer = NULL;
    long long *dcycles = NULL;
    clock_t on_host = clock();          // the host's own clock()

    for (int i = 0; i < count; i++)
        input[i] = (int)((i * 7919u + 12345u) % 100003u) - 50000;

    SAFE(cudaMalloc((void **)&dinput, sizeof(input)));
    SAFE(cudaMalloc((void **)&doutput, sizeof(output)));
    SAFE(cudaMalloc((void **)&dtops, sizeof(tops)));
    SAFE(cudaMalloc((void **)&dtimer, sizeof(timer)));
    SAFE(cudaMalloc((void **)&dcycles, sizeof(cycles)));
    SAFE(cudaMemcpy(dinput, input, sizeof(input), cudaMemcpyHostToDevice));

    minimum_with_clock <<< NUM_BLOCKS, NUM_THREADS, sizeof(int) * 2 * NUM_THREADS >>> (dinput, doutput, dtimer);
    maximum_with_clock64 << < NUM_BLOCKS, NUM_THREADS >> > (dinput, dtops, dcycles);
    SAFE(cudaGetLastError());

    SAFE(cudaMemcpy(output, doutput, sizeof(output), cudaMemcpyDeviceToHost));
    SAFE(cudaMemcpy(timer, dtimer, sizeof(timer), cudaMemcpyDeviceToHost));
    SAFE(cudaMemcpy(tops, dtops, sizeof(tops), cudaMemcpyDeviceToHost));
    SAFE(cudaMemcpy(cycles, dcycles, sizeof(cycles), cudaMemcpyDeviceToHost));

    int bad = 0, untimed = 0;
    long checksum = 0;
    for (int b = 0; b < NUM_BLOCKS; b++) {
        int want = input[2 * b * NUM_THREADS];
        for (int i = 1; i < 2 * NUM_THREADS; i++)
            if (input[2 * b * NUM_THREADS + i] < want) want = input[2 * b * NUM_THREADS + i];
        bad += output[b] != want;
        checksum += output[b];
        // the counter of 32 bits may wrap around, the difference does not
        untimed += (int)((unsigned)timer[b + NUM_BLOCKS] - (unsigned)timer[b]) <= 0;
    }
    for (int w = 0; w < warps; w++) {
        const int per_block = NUM_THREADS / 32;
        const int *first = input + 2 * (w / per_block) * NUM_THREADS + w % per_block * 32;
        int want = first[0];
        for (int i = 0; i < 32; i++) {
            if (first[i] > want) want = first[i];
            if (first[i + NUM_THREADS] > want) want = first[i + NUM_THREADS];
        }
        bad += tops[w] != want;
        untimed += cycles[w] < 0;
    }
    printf("minima of %d blocks add up to %ld\n", NUM_BLOCKS, checksum);
    printf("blocks or warps without a time: %d\n", untimed + (clock() < on_host));

    SAFE(cudaFree(dinput));
    SAFE(cudaFree(doutput));
    SAFE(cudaFree(dtops));
    SAFE(cudaFree(dtimer));
    SAFE(cudaFree(dcycles));
    printf("%s\n", bad || untimed ? "FAILED" : "PASSED");
    return bad || untimed ? EXIT_FAILURE : EXIT_SUCCESS;
}
