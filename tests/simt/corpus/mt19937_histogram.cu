// title: Histograms of MT19937's uniform and normal numbers, with chi-squared tests
// features: curand_host, shared_memory, atomics, grid_stride
// flags: -lcurand
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>
#include <curand.h>

#define BINS 64
#define CUDA_CALL(x) do { if ((x) != cudaSuccess) { \
    printf("Error at %s:%d\n", __FILE__, __LINE__); \
    return EXIT_FAILURE; } } while (0)
#define CURAND_CALL(x) do { if ((x) != CURAND_STATUS_SUCCESS) { \
    printf("Error at %s:%d\n", __FILE__, __LINE__); \
    return EXIT_FAILURE; } } while (0)

__global__ void histogram(const float *data, int n, float low, float high, unsigned int *bins)
{
    __shared__ unsigned int local[BINS];
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float position = (data[i] - low) / (high - low) * BINS;
        int bin = position < 0.0f ? 0 : position >= (float)BINS ? BINS - 1 : (int)position;
        atomicAdd(&local[bin], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

static double normalDistribution(double x) { return 0.5 * erfc(-x / sqrt(2.0)); }

/* The bins at both ends take what lies outside. */
static double chiSquared(const unsigned int *bins, int n, double low, double high, int isNormal)
{
    double sum = 0.0;
    for (int i = 0; i < BINS; i++) {
        double from = low + (high - low) * i / BINS, to = low + (high - low) * (i + 1) / BINS;
        double p = 1.0 / BINS;
        if (isNormal)
            p = (i == BINS - 1 ? 1.0 : normalDistribution(to)) - (i == 0 ? 0.0 : normalDistribution(from));
        double difference = bins[i] - n * p;
        sum += difference * difference / (n * p);
    }
    return sum;
}

int main(int argc, char *argv[])
{
    int n = argc > 1 ? atoi(argv[1]) : 20000;
    float *devData, *hostData = (float *)calloc(n, sizeof(float));
    unsigned int *devBins, bins[BINS], expected[BINS];
    curandGenerator_t gen;
    int failures = 0;

    CUDA_CALL(cudaMalloc((void **)&devData, n * sizeof(float)));
    CUDA_CALL(cudaMalloc((void **)&devBins, sizeof(bins)));
    CURAND_CALL(curandCreateGenerator(&gen, CURAND_RNG_PSEUDO_MT19937));
    CURAND_CALL(curandSetPseudoRandomGeneratorSeed(gen, 1234ULL));

    for (int isNormal = 0; isNormal < 2; isNormal++) {
        float low = isNormal ? -2.5f : 0.0f, high = isNormal ? 2.5f : 1.0f;
        if (isNormal)
            CURAND_CALL(curandGenerateNormal(gen, devData, n, 0.0f, 1.0f));
        else
            CURAND_CALL(curandGenerateUniform(gen, devData, n));
        CUDA_CALL(cudaMemset(devBins, 0, sizeof(bins)));
        histogram<<<8, 128>>>(devData, n, low, high, devBins);
        CUDA_CALL(cudaGetLastError());
        CUDA_CALL(cudaMemcpy(bins, devBins, sizeof(bins), cudaMemcpyDeviceToHost));
        CUDA_CALL(cudaMemcpy(hostData, devData, n * sizeof(float), cudaMemcpyDeviceToHost));

        memset(expected, 0, sizeof(expected));
        double mean = 0.0;
        for (int i = 0; i < n; i++) {
            double position = ((double)hostData[i] - low) / (high - low) * BINS;
            int bin = (int)floor(position);
            expected[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
            mean += hostData[i] / n;
        }
        int moved = 0;
        for (int i = 0; i < BINS; i++) moved += abs((int)bins[i] - (int)expected[i]);
        double chi = chiSquared(bins, n, low, high, isNormal);
        printf("%s: mean %.3f, chi-squared %.0f for %d degrees of freedom\n", isNormal ? "normal" : "uniform",
               mean, chi, BINS - 1);
        /* A chi-squared of 63 degrees of freedom exceeds 120 once in 50,000 times. A float on a bin's edge may move. */
        if (chi > 120.0 || moved > 4) failures++;
    }

    CURAND_CALL(curandDestroyGenerator(gen));
    CUDA_CALL(cudaFree(devData));
    CUDA_CALL(cudaFree(devBins));
    free(hostData);
    puts(failures ? "FAILED" : "PASSED");
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
