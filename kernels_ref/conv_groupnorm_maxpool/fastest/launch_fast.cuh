#include "arguments.h"

// ---- launches ----

#include "../../shared/launch_result.cuh"

struct Resident {
    int multiprocessors, major;
    int64_t forward, backward;
};

template <typename Kernel>
static int64_t resident_blocks(Kernel kernel, int threads, int bytes, int multiprocessors) {
    cudaFuncAttributes attributes = {};
    int blocks = 0;
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess || attributes.ptxVersion < 80 ||
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, bytes) != cudaSuccess) {
        cudaGetLastError();  // that a GPU has too little shared memory is no error here
        blocks = 0;
    }
    return (int64_t)blocks * multiprocessors;
}

// Blocks of statistics_kernel and of gradient_kernel that the GPU holds at a time; 0 where one cannot run or was not
// compiled for tensor cores.
static Resident resident() {
    static Resident known[16];  // asking takes longer than launching
    int device = 0, multiprocessors = 0, major = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    Resident& k = known[device % 16];
    if (device < 16 && k.multiprocessors == multiprocessors && k.major == major) return k;
    k = {multiprocessors, major, 0, 0};
    if (major >= 8) {
        k.forward = resident_blocks(statistics_kernel<SPLIT, TALL, ROWS, WARPS, BLOCKS, true>, WARPS * WARP,
                                    tile_bytes(SPLIT, ROWS), multiprocessors);
#if BACKWARD
        k.backward = resident_blocks(gradient_kernel, G_THREADS, sizeof(Strip), multiprocessors);
#endif
    }
    return k;
}
