// title: transposition of doubles with the bank size of shared memory set, as for compute capability 3
// features: deprecated_names, shared_word_order, spaced_launches, vector_types, untaken_branches, function_attributes

#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define TILE_DIM   16
#define BLOCK_ROWS 4

#define cutilSafeCall(err)  __cudaSafeCall      (err, __FILE__, __LINE__)
#define cutilCheckMsg(msg)  __cudaGetLastError  (msg, __FILE__, __LINE__)

inline void __cudaSafeCall( cudaError err, const char *file, const int line )
{
    if( cudaSuccess != err) {
        printf("%s(%i) : cudaSafeCall() Runtime API error : %s.\n", file, line, cudaGetErrorString( err) );
        exit(-1);
    }
}

inline void __cudaGetLastError( const char *errorMessage, const char *file, const int line )
{
    cudaError_t err = cudaGetLastError();
    if( cudaSuccess != err) {
        printf("%s(%i) : %s : %s.\n", file, line, errorMessage, cudaGetErrorString( err) );
        exit(-1);
    }
}

#if CUDART_VERSION < 4000
// CUDA 3.2 and before
#include <cutil_inline.h>
#define SYNCHRONIZE() cutilSafeCall( cudaThreadSynchronize() )
#define RESET()       cudaThreadExit()
#else
#define SYNCHRONIZE() cutilSafeCall( cudaDeviceSynchronize() )
#define RESET()       cudaDeviceReset()
#endif

__global__ void transpose(double *odata, const double *idata, int width, int height)
{
    double __shared__ tile[TILE_DIM][TILE_DIM + 1];

    int xIndex = __mul24(blockIdx.x, TILE_DIM) + threadIdx.x;
    int yIndex = __mul24(blockIdx.y, TILE_DIM) + threadIdx.y;
    for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS)
        if (xIndex < width && yIndex + i < height)
            tile[threadIdx.y + i][threadIdx.x] = idata[__mul24(yIndex + i, width) + xIndex];

    __syncthreads();

    xIndex = __mul24(blockIdx.y, TILE_DIM) + threadIdx.x;
    yIndex = __mul24(blockIdx.x, TILE_DIM) + threadIdx.y;
    for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS)
        if (xIndex < height && yIndex + i < width)
            odata[__mul24(yIndex + i, height) + xIndex] = tile[threadIdx.x][threadIdx.y + i];
}

// Rotates groups of four doubles through dynamic shared memory
__global__ void rotate4(double4 *data, int n)
{
    extern double4 __shared__ s_data[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) s_data[threadIdx.x] = data[i];
    __syncthreads();
    int other = threadIdx.x ^ 1;
    if (blockIdx.x * blockDim.x + other < n) {
        double4 v = s_data[other];
        if (i < n) data[i] = make_double4(v.y, v.z, v.w, v.x);
    }
}

__global__ void count_bits4(const ulonglong4 *in, longlong4 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    ulonglong4 v = in[i];
    longlong4 r;
    r.x = __popcll(v.x);
    r.y = __clzll((long long) v.y);
    r.z = __ffsll((long long) v.z);
    r.w = (long long) __brevll(v.w);
    out[i] = r;
}

int main( int argc, char** argv)
{
    const int width = 75, height = 50, n = width * height, groups = 154;
    double *h_i = (double*) malloc(n * sizeof(double)), *h_o = (double*) malloc(n * sizeof(double)), *d_i, *d_o;
    int wrong = 0, i;
    for (i = 0; i < n; i++) h_i[i] = i * 0.5 - 100;

    // Does nothing on devices whose banks have one size
    cutilSafeCall( cudaDeviceSetSharedMemConfig( cudaSharedMemBankSizeEightByte ) );
    cudaSharedMemConfig config;
    cutilSafeCall( cudaDeviceGetSharedMemConfig( &config ) );
    if( config != cudaSharedMemBankSizeFourByte && config != cudaSharedMemBankSizeEightByte ) wrong++;
    cutilSafeCall( cudaDeviceSetCacheConfig( cudaFuncCachePreferShared ) );
    cutilSafeCall( cudaFuncSetCacheConfig( rotate4, cudaFuncCachePreferShared ) );

    cutilSafeCall( cudaMalloc( (void**) &d_i, n * sizeof(double) ) );
    cutilSafeCall( cudaMalloc( (void**) &d_o, n * sizeof(double) ) );
    cutilSafeCall( cudaMemcpy( d_i, h_i, n * sizeof(double), cudaMemcpyHostToDevice ) );
    dim3 grid( (width + TILE_DIM - 1) / TILE_DIM, (height + TILE_DIM - 1) / TILE_DIM ), threads( TILE_DIM, BLOCK_ROWS );
    transpose<<< grid, threads, 0 >>>( d_o, d_i, width, height );
    cutilCheckMsg( "transpose failed" );
    SYNCHRONIZE();
    cutilSafeCall( cudaMemcpy( h_o, d_o, n * sizeof(double), cudaMemcpyDeviceToHost ) );
    for (i = 0; i < n; i++) wrong += h_o[i % width * height + i / width] != h_i[i];
    printf( "transposed %d x %d: %d wrong\n", width, height, wrong );

    rotate4<< < (groups + 31) / 32, 32, 32 * sizeof(double4)>> >( (double4*) d_i, groups );
    cutilCheckMsg( "rotate4 failed" );
    cutilSafeCall( cudaMemcpy( h_o, d_i, n * sizeof(double), cudaMemcpyDeviceToHost ) );
    for (i = 0; i < n; i++) {
        double want = i < 4 * groups ? h_i[(i / 4 ^ 1) * 4 + (i + 1) % 4] : h_i[i];
        wrong += h_o[i] != want;
    }
    printf( "rotated %d groups: %d wrong\n", groups, wrong );

    // values of 64 bits, in the same memory
    unsigned long long *h_u = (unsigned long long*) h_i, seed = 88172645463325252ull;
    for (i = 0; i < 4 * groups; i++) {
        seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17;
        h_u[i] = seed >> (i % 50);
    }
    cutilSafeCall( cudaMemcpy( d_i, h_u, groups * sizeof(ulonglong4), cudaMemcpyHostToDevice ) );
    count_bits4 << <(groups + 63) / 64, 64>> > ( (ulonglong4*) d_i, (longlong4*) d_o, groups );
    cutilCheckMsg( "count_bits4 failed" );
    cutilSafeCall( cudaMemcpy( h_o, d_o, groups * sizeof(longlong4), cudaMemcpyDeviceToHost ) );
    long long *h_s = (long long*) h_o, total = 0;
    for (i = 0; i < 4 * groups; i++) {
        unsigned long long v = h_u[i], reversed = 0;
        long long bits = 0, leading = 64, lowest = 0;
        for (int b = 63; b >= 0; b--)
            if (v >> b & 1) {
                bits++;
                if (leading == 64) leading = 63 - b;
                lowest = b + 1;
                reversed |= 1ull << (63 - b);
            }
        long long want = i % 4 == 0 ? bits : i % 4 == 1 ? leading : i % 4 == 2 ? lowest : (long long) reversed;
        wrong += h_s[i] != want;
        if (i % 4 < 3) total += h_s[i];
    }
    printf( "bits: %lld, %d wrong\n", total, wrong );

    cutilSafeCall( cudaFree( d_i ) );
    cutilSafeCall( cudaFree( d_o ) );
    free( h_i );
    free( h_o );
    RESET();
    printf( wrong ? "FAILED\n" : "PASSED\n" );
    return wrong ? 1 : 0;
}
