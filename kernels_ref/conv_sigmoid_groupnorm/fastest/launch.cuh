#include "arguments.h"

// ---- launches ----

#include "../../shared/launch_result.cuh"

// Whether what runs on this GPU was compiled with tensor cores' instructions.
static bool has_tensor_cores() {
    int device = 0, major = 0, minor = 0, arch = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
#if defined(__CUDA_ARCH_LIST__)
    for (const int compiled : {__CUDA_ARCH_LIST__}) {
        if (compiled <= major * 100 + minor * 10) arch = std::max(arch, compiled);
    }
#elif defined(__CUDA_ARCH__)
    arch = std::min(__CUDA_ARCH__, major * 100 + minor * 10);  // compiled for a CPU
#endif
    return arch >= 800;
}

static int multiprocessors() {
    int device = 0, count = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    return count;
}

struct Plan {
    enum { IMAGE, HALF_IMAGE, TILES, GENERAL } kernels;
    int64_t parts, floats;  // of the workspace: elements before the last array, and all
    int64_t awaited;  // elements that are NOT_YET at first
    int64_t tiles_x, tiles_y, teams;
#if !BACKWARD
    Deal deal;  // of HALF_IMAGE
#endif
};

// How many blocks of a kernel, or of one that needs no more, the GPU holds at a time: 0 where it has too little shared
// memory.
template <typename Kernel>
static int64_t resident_blocks(Kernel kernel, int bytes) {
    int blocks = 0;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, THREADS, bytes) != cudaSuccess) {
        cudaGetLastError();  // no error of ours
        return 0;
    }
    return (int64_t)blocks * multiprocessors();
}

#if !BACKWARD
// How half_kernel is to deal out images: false where half the channels of one have no room on the GPU, or where all of
// them as tiles take less time, so many rounds of all blocks. The costs are 10 nanoseconds of an H200, fitted to times.
static bool deal(int64_t N, int64_t OH, int64_t OW, int64_t rounds_of_tiles, Deal& best) {
    constexpr int ROUND = 220, PIECE = SPLIT == 3 ? 275 : 225, PIXELS = 5, TILES = SPLIT == 3 ? 1900 : 1550;
    int device = 0, room = 0;
    cudaGetDevice(&device);
    if (cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device) != cudaSuccess) return false;
    const int64_t resident = 2 * multiprocessors(), items = HALVES * N;
    int64_t least = rounds_of_tiles * TILES;
    bool found = false;
    for (int rows = 2; rows <= WARPS; ++rows) {
        Deal d = {};
        d.rows = rows;
        d.steps_log = rows < 3 ? 2 : rows < 5 ? 1 : 0;  // at most a step for each of 8 warps
        d.columns = STEP << d.steps_log;
        d.pixels = (rows + 2) * (d.columns + 2);
        if (OW * rows > room) break;
        d.channel = (rows * OW + 7) / 16 * 16 + 8;
        d.pieces = (OW + d.columns - 1) / d.columns;
        d.strips = (OH + rows - 1) / rows;
        d.teams = std::min(items, resident / d.strips);
        if (d.teams == 0 || 2 * (half_bytes(d) + 1024) > room) continue;  // 1 KB of each block is the system's
        const int64_t rounds = (items + d.teams - 1) / d.teams;
        const int64_t cost = rounds * (ROUND + d.pieces * (PIECE + d.pixels / PIXELS));
        if (cost < least) least = cost, best = d, found = true;
    }
    if (!found) return false;
    int blocks = 0;
    if (cudaFuncSetAttribute(half_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, half_bytes(best)) ==
            cudaSuccess &&
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, half_kernel, THREADS, half_bytes(best)) == cudaSuccess) {
        return (int64_t)best.teams * best.strips <= (int64_t)blocks * multiprocessors();
    }
    cudaGetLastError();  // no error of ours
    return false;
}
#endif

// Whether blocks may wait for each other. On a CPU they run one after another, until a barrier.
#ifdef __CUDA_ARCH_LIST__
constexpr bool BLOCKS_WAIT = true;
#else
constexpr bool BLOCKS_WAIT = false;
#endif

static Plan plan(const Sizes& of) {
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    Plan p = {};
    const int64_t OH = H - KH + 1, OW = W - KW + 1;
    if (C == IN && OC == OUT && KH == 3 && KW == 3 && has_tensor_cores()) {
        const int64_t resident = resident_blocks(image_kernel, sizeof(Shared));
        p.tiles_x = (OW + COLUMNS - 1) / COLUMNS;
        p.tiles_y = (OH + ROWS - 1) / ROWS;
        p.teams = std::min(N, resident / p.tiles_y);
        if (resident > 0) {
            p.kernels = Plan::TILES;
            if (BLOCKS_WAIT && p.teams > 0 && p.tiles_x == 1 && H % 2 == 0 && W % 2 == 0 && groups <= QUADS) {
                p.kernels = Plan::IMAGE;
                p.awaited = N * QUADS * p.tiles_y * 2;
            }
#if !BACKWARD
            else if (BLOCKS_WAIT && W % 2 == 0 && groups > 1 && groups <= QUADS &&
                     deal(N, OH, OW, (N * p.tiles_y * p.tiles_x + resident - 1) / resident, p.deal)) {
                p.kernels = Plan::HALF_IMAGE;
                p.awaited = N * QUADS * p.deal.strips * 2;
            }
#endif
            // Also for an x that is found to lie badly, which has tiles.
            p.parts = N * OUT * p.tiles_y * p.tiles_x * 2;
            p.floats = p.parts + N * OUT * 2;
            return p;
        }
    }
    p.kernels = Plan::GENERAL;
    p.tiles_x = (OW + general::TILE_X - 1) / general::TILE_X;
    p.tiles_y = (OH + general::TILE_Y - 1) / general::TILE_Y;
    p.parts = N * OC * p.tiles_x * p.tiles_y * general::WARPS * 3;
#if !BACKWARD
    p.floats = p.parts + 2 * N * groups;
#else
    p.floats = p.parts;
#endif
    return p;
}

int64_t conv_sigmoid_groupnorm_workspace(const Sizes& of) { return plan(of).floats; }

const char* conv_sigmoid_groupnorm_launch(const Tensors& t, const Sizes& of, double epsilon, void* stream_of_torch) {
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    float eps = epsilon;
    const int64_t OH = H - KH + 1, OW = W - KW + 1, pixels = OH * OW;
    Plan p = plan(of);
    Shape s = {(int)N, (int)H, (int)W, (int)OH, (int)OW, (int)groups, (int)p.tiles_x, (int)p.tiles_y};
    cudaError_t error = cudaSuccess;
#if BACKWARD
    float2* means = reinterpret_cast<float2*>(t.means);
#endif
    if ((p.kernels == Plan::IMAGE || p.kernels == Plan::HALF_IMAGE) && reinterpret_cast<uintptr_t>(t.x) % 16 == 0) {
        error = cudaMemsetAsync(t.workspace, 0xff, p.awaited * sizeof(float), stream);
        if (error != cudaSuccess) return message(error);
        int teams = p.teams;
        Tensors u = t;
#if BACKWARD
        void* arguments[] = {&u.x,         &u.conv_weight, &u.conv_bias, &u.bias, &u.scale, &u.gn_weight, &u.gn_bias,
                             &u.workspace, &u.y,           &means,       &s,      &teams,   &eps};
#else
        const bool half = p.kernels == Plan::HALF_IMAGE;
        void* const dealt = half ? (void*)&p.deal : &teams;
        void* arguments[] = {&u.x,       &u.conv_weight, &u.conv_bias, &u.bias, &u.scale, &u.gn_weight,
                             &u.gn_bias, &u.workspace,   &u.y,         &s,      dealt,    &eps};
        if (half) {
            return message(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(half_kernel),
                                                       dim3(p.deal.teams * p.deal.strips), dim3(THREADS), arguments,
                                                       half_bytes(p.deal), stream));
        }
#endif
        // Cooperative: blocks that wait for each other must all be resident, also where two streams want the GPU.
        return message(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(image_kernel), dim3(teams * p.tiles_y),
                                                   dim3(THREADS), arguments, sizeof(Shared), stream));
    }
    if (p.kernels != Plan::GENERAL) {
        float2* parts = reinterpret_cast<float2*>(t.workspace);
        float2* lines = reinterpret_cast<float2*>(t.workspace + p.parts);
        const int64_t grid = std::min<int64_t>(N * p.tiles_x * p.tiles_y, 2 * multiprocessors());
        for (const auto kernel : {tiles_kernel<false>, tiles_kernel<true>}) {
            error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
            if (error != cudaSuccess) return message(error);
        }
        tiles_kernel<false><<<grid, THREADS, sizeof(Shared), stream>>>(t.x, t.conv_weight, t.conv_bias, t.bias, t.scale,
                                                                       nullptr, parts, nullptr, s);
#if !BACKWARD
        lines_kernel<<<N * groups, THREADS, 0, stream>>>(parts, t.gn_weight, t.gn_bias, lines, s, eps);
#else
        lines_kernel<<<N * groups, THREADS, 0, stream>>>(parts, t.gn_weight, t.gn_bias, lines, means, s, eps);
#endif
        tiles_kernel<true><<<grid, THREADS, sizeof(Shared), stream>>>(t.x, t.conv_weight, t.conv_bias, t.bias, t.scale,
                                                                      lines, nullptr, t.y, s);
        return message();
    }

    if (N * p.tiles_x * p.tiles_y > INT_MAX) return "the output has more than 2^31 - 1 tiles";
    const general::Shape g = {(int)C,  (int)H,  (int)W,  (int)OC,        (int)KH,
                              (int)KW, (int)OH, (int)OW, (int)p.tiles_x, (int)p.tiles_y};
    Moments* moments = reinterpret_cast<Moments*>(t.workspace);
#if !BACKWARD
    float *mean = t.workspace + p.parts, *rstd = mean + N * groups;
#endif
    const bool three = KH == 3 && KW == 3;
    const auto conv = three ? general::conv_sigmoid_moments_kernel<3> : general::conv_sigmoid_moments_kernel<0>;
    conv<<<N * p.tiles_y * p.tiles_x, dim3(general::TILE_X, general::WARPS), 0, stream>>>(
        t.x, t.conv_weight, t.conv_bias, t.bias, t.scale, t.y, moments, g);
    const int64_t count = OC / groups * p.tiles_x * p.tiles_y * general::WARPS;
    // About 16 pixels a thread. Four neighbours are one float4 only if every plane begins at a multiple of 16 bytes.
    const dim3 grid(N * OC, std::min((pixels + 16 * THREADS - 1) / (16 * THREADS), general::MAX_GRID_Y));
    const auto normalise = pixels % 4 == 0 ? general::normalise_kernel<4> : general::normalise_kernel<1>;
#if BACKWARD
    general::merge_kernel<<<N * groups, THREADS, 0, stream>>>(moments, means, count, eps);
    normalise<<<grid, THREADS, 0, stream>>>(t.y, means, t.gn_weight, t.gn_bias, OC, OC / groups, pixels);
#else
    general::merge_kernel<<<N * groups, THREADS, 0, stream>>>(moments, mean, rstd, count, eps);
    normalise<<<grid, THREADS, 0, stream>>>(t.y, mean, rstd, t.gn_weight, t.gn_bias, OC, OC / groups, pixels);
#endif
    return message();
}
