#include <atomic>

#if !BACKWARD
constexpr int CHUNK = 4096;                        // bytes
constexpr int CHUNK_FLOATS = CHUNK / 4;
#endif
constexpr int QUADS = CHUNK / 16 / WARP;           // float4 of a chunk that a lane has
constexpr int SHARED = 232448;                     // bytes that a block of Hopper can have
constexpr int GROUPS = 64;                         // whose statistics a block keeps: more than its ring has chunks
constexpr int MOMENT_WARPS = 2, WRITING_WARPS = 3;
constexpr int ONCE_THREADS = (2 + MOMENT_WARPS + WRITING_WARPS) * WARP;
constexpr int SLOTS = (SHARED - 2816) / CHUNK;     // of the ring
constexpr int MEMBERS_A_LANE = MEMBERS / WARP;
constexpr int64_t LEAST_PIXELS = 512, LEAST_ELEMENTS = 2 << 20, LEAST_CHUNKS = 8;
static_assert(SLOTS < GROUPS && 2 * (SLOTS + 2) < KEPT, "a group's place is taken before the group is done with");

// The groups are dealt to `teams` teams of `team` blocks in turn, and a group's chunks to the team's blocks.
#if BACKWARD
struct Deal {
    unsigned teams, team, total, groups, channels, chunks_a_group, chunks_a_plane;
    int last;  // floats of a plane's last chunk
    int64_t elements, pixels;
};

struct Once : Deal {
    const float *x, *weight, *bias;
    float* y;
    float2* means;
    uint64_t* published;  // [KEPT][teams][team][2]: {mean, tag and count}, {squares, tag and count}
    float eps;
};
#else
struct Once {
    const float *x, *weight, *bias;
    float* y;
    uint64_t* published;  // [KEPT][teams][team][2]: {mean, tag and count}, {squares, tag and count}
    unsigned teams, team, total, groups, channels, chunks_a_group, chunks_a_plane;
    int last;  // floats of a plane's last chunk
    int64_t elements, pixels;
    float eps;
};
using Deal = Once;
#endif

// Where a chunk lies: in the how manieth group of this team, in which of its channels, the how manieth of this plane.
// The chunks of a team's groups are numbered through; block m of the team has m, m + team, m + 2 team, ...
struct Place {
    unsigned turn, channel, part;
    __device__ Place(const Deal& a, unsigned chunk) {
        turn = chunk / a.chunks_a_group;
        channel = (chunk - turn * a.chunks_a_group) / a.chunks_a_plane;
        part = chunk % a.chunks_a_plane;
    }
    // The chunk so many further as `by` is from the first. Dividing each time would take longer than loading a chunk.
    __device__ void step(const Deal& a, const Place& by) {
        part += by.part, channel += by.channel, turn += by.turn;
        if (part >= a.chunks_a_plane) part -= a.chunks_a_plane, ++channel;
        if (channel >= a.channels) channel -= a.channels, ++turn;
    }
    __device__ int size(const Deal& a) const { return part + 1 == a.chunks_a_plane ? a.last : CHUNK_FLOATS; }
    __device__ int64_t begin(const Deal& a, unsigned team) const {
        return (int64_t)(turn * a.teams + team) * a.elements + channel * a.pixels + (int64_t)part * CHUNK_FLOATS;
    }
};

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// A barrier that is passed after so many arrivals.
__device__ void set_up(uint64_t* barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}

// Orders this thread's ordinary accesses to shared memory and the copies: those go another way, a "proxy".
__device__ void before_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// A barrier that is to be passed when so many bytes are there.
__device__ void expect(uint64_t* barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

__device__ void copy(void* to, const float* from, unsigned bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// These warps of the block have come here.
template <int WARPS>
__device__ void meet() {
    asm volatile("bar.sync 1, %0;" ::"n"(WARPS * WARP) : "memory");
}

__device__ void arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ void wait(uint64_t* barrier, unsigned parity) {
    unsigned done;
    do {
        asm volatile(
            "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            " selp.u32 %0, 1, 0, p;\n}"
            : "=r"(done)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
    } while (!done);
}

// A place in the ring, and whether it is passed for an even or an odd time.
struct Slot {
    unsigned index, parity = 0;
    template <int PLACES>
    __device__ void step(unsigned by) {
        index += by;
        if (index >= PLACES) index -= PLACES, parity ^= 1;
    }
};

__device__ float warp_sum(float v) {
    for (int offset = WARP / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(ALL_LANES, v, offset);
    return v;
}

// Where in `published` a member puts a group's moments, and what shows there that they are this group's.
__device__ uint64_t place_of(const Deal& a, unsigned turn, unsigned team, unsigned member) {
    return 2 * (((uint64_t)(turn % KEPT) * a.teams + team) * a.team + member);
}
__device__ unsigned tag_of(unsigned turn) { return turn / KEPT % 65535 + 1; }

__device__ uint64_t peek(const uint64_t* word) {
    uint64_t v;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(v) : "l"(word) : "memory");
    return v;
}

__device__ void publish(uint64_t* word, float v, unsigned low) {
    const uint64_t both = (uint64_t)__float_as_uint(v) << 32 | low;
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(word), "l"(both) : "memory");
}

// Moments of this lane's part of a chunk: of a whole one, or of its first `quads` float4.
template <bool WHOLE>
__device__ Moments of_chunk(const float4* chunk, int quads, int lane) {
    float4 v[QUADS];
    float count = 0.0f, sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int k = 0; k < QUADS; ++k) {
        if (!WHOLE && k * WARP + lane >= quads) continue;
        v[k] = chunk[k * WARP + lane];
        sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
        count += 4.0f;
    }
    const float mean = count > 0.0f ? sum / count : 0.0f;
#pragma unroll
    for (int k = 0; k < QUADS; ++k) {
        if (!WHOLE && k * WARP + lane >= quads) continue;
        const float a = v[k].x - mean, b = v[k].y - mean, c = v[k].z - mean, d = v[k].w - mean;
        squares += (a * a + b * b) + (c * c + d * d);
    }
    return {count, mean, squares};
}
