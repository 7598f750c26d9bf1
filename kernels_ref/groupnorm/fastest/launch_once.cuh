// ---- launches ----

// How many blocks of a kernel a GPU runs at a time, one a multiprocessor; 0 if it cannot run there.
static int blocks_of(const void* kernel, int threads, int device) {
    int blocks = 0, room = 0, cooperative = 0, multiprocessors = 0, each = 0;
    cudaFuncAttributes built;
    cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (room >= SHARED && cooperative && cudaFuncGetAttributes(&built, kernel) == cudaSuccess &&
        built.ptxVersion >= 90 &&  // not built for an older GPU, with nothing in it
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED) == cudaSuccess &&
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, SHARED) == cudaSuccess) {
        blocks = std::min<int64_t>(each * multiprocessors, MEMBERS);
    }
    cudaGetLastError();  // what could not be asked is no later launch's error
    return blocks;
}

// The same, asked once a device.
constexpr int MOST = 64;
using Known = std::atomic<int>[MOST];  // and one more, so that 0 is "not known yet"
static int blocks_of(const void* kernel, int threads, Known& known) {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return 0;
    if (device >= MOST) return blocks_of(kernel, threads, device);
    if (known[device] == 0) known[device] = blocks_of(kernel, threads, device) + 1;
    return known[device] - 1;
}

// Deals the groups to teams: false if that is not worth it. A block holds at most `held` chunks of a group at a time.
static bool dealt(Deal& a, int blocks, int64_t held, const Sizes& of) {
    const auto [N, C, groups, pixels] = of;
    const int64_t total = N * groups, elements = C / groups * pixels;
    const int64_t chunks_a_plane = (pixels + CHUNK_FLOATS - 1) / CHUNK_FLOATS;
    const int64_t chunks_a_group = C / groups * chunks_a_plane;
    if (pixels < LEAST_PIXELS || total * elements < LEAST_ELEMENTS || total * chunks_a_group > INT_MAX) return false;
    // So many teams that the block with the most chunks to pass has the fewest. A team of many blocks needs many chunks
    // a group, or else waiting for one another takes longer than reading; a team of few must hold a group in its rings.
    int64_t teams = 0, least = 0;
    for (int64_t t = 1; t <= std::min<int64_t>(blocks, total); ++t) {
        const int64_t team = blocks / t, turns = (total + t - 1) / t;
        if (team > chunks_a_group || (chunks_a_group + team - 1) / team > held) continue;
        const int64_t chunks = std::max(turns * chunks_a_group / team, turns * LEAST_CHUNKS);
        if (teams == 0 || chunks < least) teams = t, least = chunks;
    }
    if (teams == 0) return false;
    a.teams = teams, a.team = blocks / teams, a.total = total, a.groups = groups, a.channels = C / groups;
    a.chunks_a_group = chunks_a_group, a.chunks_a_plane = chunks_a_plane;
    a.last = pixels - (chunks_a_plane - 1) * CHUNK_FLOATS;
    a.elements = elements, a.pixels = pixels;
    return true;
}

// Starts a kernel whose blocks wait for one another: false if they cannot all run.
static bool launch_together(const void* kernel, int threads, Deal& a, void* scratch, cudaStream_t stream) {
    const int64_t turns = (a.total + a.teams - 1) / a.teams;
    const int64_t bytes = std::min(turns, KEPT) * a.teams * a.team * 16;
    if (cudaMemsetAsync(scratch, 0, bytes, stream) != cudaSuccess) return false;  // no tag is 0
    void* arguments[] = {&a};
    const cudaError_t error =
        cudaLaunchCooperativeKernel(kernel, dim3(a.teams * a.team), dim3(threads), arguments, SHARED, stream);
    if (error == cudaErrorCooperativeLaunchTooLarge) cudaGetLastError();
    return error == cudaSuccess;
}

bool launch_once(const Tensors& t, const Sizes& of, float eps, cudaStream_t stream) {
    static Known known;
    const void* kernel = reinterpret_cast<const void*>(groupnorm_once_kernel);
    const int blocks = in_fours(of.pixels, t.x, t.y) ? blocks_of(kernel, ONCE_THREADS, known) : 0;
    Once a;
    if (blocks == 0 || !dealt(a, blocks, SLOTS - WRITING_WARPS, of)) return false;
    a.x = t.x, a.weight = t.weight, a.bias = t.bias, a.y = t.y, a.eps = eps;
#if BACKWARD
    a.means = reinterpret_cast<float2*>(t.means);
#endif
    a.published = static_cast<uint64_t*>(t.scratch);
    return launch_together(kernel, ONCE_THREADS, a, t.scratch, stream);
}
#if BACKWARD

bool launch_backward_once(const Tensors& t, const Sizes& of, float2* sums, cudaStream_t stream) {
    static Known known;
    const void* kernel = reinterpret_cast<const void*>(groupnorm_backward_once_kernel);
    const int blocks = in_fours(of.pixels, t.x, t.gy, t.gx) ? blocks_of(kernel, BACKWARD_THREADS, known) : 0;
    Backward a;
    if (blocks == 0 || !dealt(a, blocks, PAIRS, of)) return false;
    a.x = t.x, a.gy = t.gy, a.weight = t.weight, a.means = reinterpret_cast<const float2*>(t.means), a.gx = t.gx;
    a.sums = sums;
    a.published = static_cast<uint64_t*>(t.scratch);
    return launch_together(kernel, BACKWARD_THREADS, a, t.scratch, stream);
}
#endif
