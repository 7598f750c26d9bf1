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

template <int STAGES>
static void launch_tiles(const Tensors& t, const Sizes& of, cudaStream_t stream) {
    const auto [batch, rows, columns] = of;
    const auto kernel = tiles_kernel<STAGES>;
    constexpr int bytes = STAGES * STAGE_BYTES;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    const int row_tiles = (rows + ROWS - 1) / ROWS, vector_tiles = (batch + VECTORS - 1) / VECTORS;
    kernel<<<row_tiles * vector_tiles, THREADS, bytes, stream>>>(static_cast<const uint4*>(t.x), t.x_scale,
                                                                 static_cast<const uint4*>(t.weight), t.weight_scale,
                                                                 t.y, batch, rows, columns / 16, vector_tiles);
}

const char* launch(const Tensors& t, const Sizes& of, void* on_stream) {
    const cudaStream_t stream = static_cast<cudaStream_t>(on_stream);
    const auto [batch, rows, columns] = of;
    const int64_t pieces = columns / 16;
    int device = 0, room = 0;
    const cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return message(error);
    cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);

    const int64_t tiles = (rows + (int64_t)ROWS - 1) / ROWS * ((batch + VECTORS - 1) / VECTORS);
    if (room < 2 * STAGE_BYTES || !is_ampere(device) || std::max(rows, batch) * pieces > INT_MAX || tiles > INT_MAX) {
        const dim3 blocks((rows + SIDE - 1) / SIDE, (batch + SIDE - 1) / SIDE);
        int8_matmul_kernel<<<blocks, THREADS, 0, stream>>>(static_cast<const uint4*>(t.x), t.x_scale,
                                                           static_cast<const uint4*>(t.weight), t.weight_scale, t.y,
                                                           batch, rows, pieces);
    } else if (room >= MOST_STAGES * STAGE_BYTES) {
        launch_tiles<MOST_STAGES>(t, of, stream);
    } else if (room >= 3 * STAGE_BYTES) {
        launch_tiles<3>(t, of, stream);
    } else {
        launch_tiles<2>(t, of, stream);
    }
    return message();
}
