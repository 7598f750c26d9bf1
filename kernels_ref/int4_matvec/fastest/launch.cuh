#include "arguments.h"
#include "../../shared/launch_result.cuh"

// Returns whether the current GPU has the instructions of Ampere and later ones.
static bool is_ampere(int device) {
#ifdef __SIMT__
    return true;
#else
    int major = 0;
    return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 8;
#endif
}

const char* launch(const void* x, const void* packed, const void* scales, void* y, const Sizes& of, void* on_stream) {
    const cudaStream_t stream = static_cast<cudaStream_t>(on_stream);
    const auto [batch, rows, words, groups, words_per_group] = of;
    const __half* const vectors = static_cast<const __half*>(x);
    const unsigned* const weights = static_cast<const unsigned*>(packed);
    const __half* const factors = static_cast<const __half*>(scales);
    __half* const to = static_cast<__half*>(y);
    const auto begins_at = [](const void* p, int bytes) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; };

    int device = 0, room = 0, multiprocessors = 0;
    const cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return message(error);
    const bool wide = words % 4 == 0 && words_per_group % PIECE == 0 && begins_at(x, 16) && begins_at(packed, 16) &&
                      is_ampere(device);
    const int pieces = words_per_group / PIECE;  // of a group
    if (wide && batch == 1 && (pieces & (pieces - 1)) == 0 && (int64_t)(rows + ROWS) * words <= INT_MAX) {
        cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
        int pieces_log = 0;
        while (1 << pieces_log < pieces) ++pieces_log;
        const int chunks = words / 4, padded = (chunks + CHUNKS - 1) / CHUNKS * CHUNKS;
        const Matrix m = {static_cast<const uint4*>(packed),
                          static_cast<const unsigned short*>(scales),
                          rows,
                          chunks,
                          padded,
                          groups,
                          pieces_log};
        const int64_t shared = sizeof(Shared) + (padded + 2) * 4 * (int64_t)sizeof(uint4);
        if (shared <= room) {
            const auto kernel = one_vector_kernel;
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
            // The caches have little to keep: weights are read once.
            cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                 cudaSharedmemCarveoutMaxShared);
            const int tiles = (rows + ROWS - 1) / ROWS;
            kernel<<<std::min(tiles, BLOCKS * multiprocessors), THREADS, shared, stream>>>(static_cast<const uint4*>(x),
                                                                                           m, to);
            return message();
        }
    }
    if (wide) {
        const int at_once = batch == 1 ? 1 : 8;
        const auto kernel = batch == 1 ? mma_kernel<1> : mma_kernel<8>;
        const dim3 blocks((rows + ROWS - 1) / ROWS, (batch + at_once - 1) / at_once);
        kernel<<<blocks, THREADS, 0, stream>>>(vectors, weights, factors, to, batch, rows, words, groups,
                                               words_per_group);
    } else {
        any_kernel<<<dim3((rows + WARPS - 1) / WARPS, batch), THREADS, 0, stream>>>(vectors, weights, factors, to, rows,
                                                                                    words, groups, words_per_group);
    }
    return message();
}
