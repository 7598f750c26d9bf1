#include "arguments.h"

// ---- launches ----

#include "../../shared/launch_result.cuh"

constexpr int FIRST_BYTES = tile_bytes(SPLIT, ROWS);
constexpr int LAST_BYTES = tile_bytes(SPLIT, LAST_ROWS) + CHUNK / 16 / LAST_TALL * LAST_ROWS * (WIDE + 8) * 4;

struct Resident {
    int multiprocessors, major;
    int first, last;  // blocks a multiprocessor that it holds at a time of forward's two kernels
};

// No blocks where the kernels cannot run, also where they were not compiled for tensor cores.
static Resident resident() {
    static Resident known[16];  // asking takes longer than launching
    const auto first = statistics_kernel<SPLIT, TALL, ROWS, WARPS, BLOCKS, false>;
    const auto last = logsumexp_kernel<SPLIT, LAST_TALL, LAST_ROWS, LAST_WARPS, LAST_BLOCKS>;
    int device = 0;
    Resident r = {};
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&r.multiprocessors, cudaDevAttrMultiProcessorCount, device);
    cudaDeviceGetAttribute(&r.major, cudaDevAttrComputeCapabilityMajor, device);
    Resident& k = known[device % 16];
    if (device < 16 && k.multiprocessors == r.multiprocessors && k.major == r.major) return k;
    cudaFuncAttributes attributes = {};
    constexpr auto BYTES = cudaFuncAttributeMaxDynamicSharedMemorySize;
    if (r.major < 8 || cudaFuncGetAttributes(&attributes, first) != cudaSuccess || attributes.ptxVersion < 80 ||
        cudaFuncSetAttribute(first, BYTES, FIRST_BYTES) != cudaSuccess ||
        cudaFuncSetAttribute(last, BYTES, LAST_BYTES) != cudaSuccess ||
#if BACKWARD
        cudaFuncSetAttribute(sums_kernel<false>, BYTES, sizeof(SumsShared)) != cudaSuccess ||
        cudaFuncSetAttribute(sums_kernel<true>, BYTES, sizeof(SumsShared)) != cudaSuccess ||
        cudaFuncSetAttribute(gradients_kernel<false>, BYTES, sizeof(LastShared)) != cudaSuccess ||
        cudaFuncSetAttribute(gradients_kernel<true>, BYTES, sizeof(LastShared)) != cudaSuccess ||
#endif
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&r.first, first, WARPS * WARP, FIRST_BYTES) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&r.last, last, LAST_WARPS * WARP, LAST_BYTES) != cudaSuccess) {
        cudaGetLastError();  // that a GPU has too little shared memory is no error here
        r.first = r.last = 0;
    }
    if (r.first == 0 || r.last == 0) r.first = r.last = 0;
    return k = r;
}

#if BACKWARD
bool conv_groupnorm_logsumexp_fits(const Sizes& s) {
#else
static bool fits(const Sizes& s) {
#endif
    return s.C <= IN && s.OC <= CHUNK && s.KH == 3 && s.KW == 3 && resident().first > 0;
}

struct FastPlan {
    int64_t parts;  // moments a channel
    int64_t tiles_x, tiles_y, tiles, blocks;
    int64_t last_tiles_y, last_tiles, last_blocks;  // of logsumexp_kernel
};

static FastPlan fast_plan(int64_t N, int64_t H, int64_t W) {
    FastPlan p = {};
    const Resident r = resident();
    p.tiles_x = (W - 2 + WIDE - 1) / WIDE;
    p.tiles_y = (H - 2 + ROWS - 1) / ROWS;
    p.last_tiles_y = (H - 2 + LAST_ROWS - 1) / LAST_ROWS;
    const int64_t of_image = p.tiles_x * p.tiles_y;
    p.tiles = N * of_image;
    p.last_tiles = N * p.tiles_x * p.last_tiles_y;
    p.blocks = std::min<int64_t>(p.tiles, r.first * r.multiprocessors);
    p.last_blocks = std::min<int64_t>(p.last_tiles, r.last * r.multiprocessors);
    p.parts = std::min(of_image, of_image * p.blocks / p.tiles + 2) * (WARPS * TALL * 16 / CHUNK);
    return p;
}

static const char* launch_fast(const Tensors& t, const Sizes& of, const FastPlan& p, float2* statistics,
                               Moments* moments, double eps, cudaStream_t stream) {
    const int64_t each = of.OC / of.groups;
    Shape s = {(int)of.C,     (int)of.H,      (int)of.W,      (int)of.OC,   (int)of.H - 2,
               (int)of.W - 2, (int)p.tiles_x, (int)p.tiles_y, (int)p.tiles, (int)p.blocks};
    statistics_kernel<SPLIT, TALL, ROWS, WARPS, BLOCKS, false>
        <<<p.blocks, WARPS * WARP, FIRST_BYTES, stream>>>(t.x, t.conv_weight, t.conv_bias, nullptr, nullptr, nullptr,
#if BACKWARD
                                                          t.largest,
#endif
                                                          moments, p.parts, s);
    merge_parts_kernel<<<of.N * of.groups, MERGERS, 0, stream>>>(moments, t.x, t.conv_weight, t.conv_bias, statistics,
                                                                 each, p.parts, WARPS * TALL * 16 / CHUNK, s, eps);
    s.tiles_y = p.last_tiles_y;
    s.tiles = p.last_tiles;
    s.blocks = p.last_blocks;
    logsumexp_kernel<SPLIT, LAST_TALL, LAST_ROWS, LAST_WARPS, LAST_BLOCKS>
        <<<p.last_blocks, LAST_WARPS * WARP, LAST_BYTES, stream>>>(t.x, t.conv_weight, t.conv_bias, t.gn_weight,
                                                                   t.gn_bias, statistics, t.y, each, s);
    return message();
}
