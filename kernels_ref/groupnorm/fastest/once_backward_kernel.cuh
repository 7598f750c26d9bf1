// ---- backward ----

constexpr int SUMMING_WARPS = 4, GX_WARPS = 14;
constexpr int BACKWARD_THREADS = (2 + SUMMING_WARPS + GX_WARPS) * WARP;
constexpr int PAIR = 2 * CHUNK;  // a chunk of x and that of gy
constexpr int PAIRS = (SHARED - 3072) / PAIR;  // of the ring
static_assert(PAIRS + GX_WARPS < GROUPS && 2 * (PAIRS + GX_WARPS + 2) < KEPT, "a group's place is taken too early");

struct Backward : Deal {
    const float *x, *gy, *weight;
    const float2* means;
    float* gx;
    float2* sums;  // of gy and of gy * xh of each chunk, in the order of the chunks
    uint64_t* published;  // [KEPT][teams][team][2]: {sum of weight * gy, tag}, {sum of weight * gy * xh, tag}
    // Which group of all images is this team's at a turn, and its first channel.
    __device__ unsigned group(unsigned turn, unsigned of_team) const { return turn * teams + of_team; }
    __device__ unsigned first(unsigned turn, unsigned of_team) const {
        return group(turn, of_team) % groups * channels;
    }
};

// This lane's part of a chunk's sums of gy and of gy * (x - mean): of a whole one, or of its first `quads` float4.
template <bool WHOLE>
__device__ float2 sums_of_pair(const float4* x, const float4* gy, int quads, int lane, float mean) {
    float2 sums = {0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < QUADS; ++k) {
        if (!WHOLE && k * WARP + lane >= quads) continue;
        add(sums, x[k * WARP + lane], gy[k * WARP + lane], mean);
    }
    return sums;
}

__global__ void __launch_bounds__(BACKWARD_THREADS, 1)
    groupnorm_backward_once_kernel(const __grid_constant__ Backward a) {
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) unsigned char ring[];
    uint64_t* full = reinterpret_cast<uint64_t*>(ring + PAIRS * PAIR);  // a pair is there
    uint64_t* empty = full + PAIRS;  // all lanes of both warps have read it
    uint64_t* sent = empty + PAIRS;  // this block's sums of a group are published
    uint64_t* ready = sent + GROUPS;  // a group's line is there
    float4* lines = reinterpret_cast<float4*>(ready + GROUPS);  // mean, rstd, a * rstd, b * rstd * rstd
    float2* of_warp = reinterpret_cast<float2*>(lines + GROUPS);  // [2][SUMMING_WARPS]
    static_assert(PAIRS * PAIR + (2 * PAIRS + 2 * GROUPS) * 8 + GROUPS * 16 + SUMMING_WARPS * 16 <= SHARED, "room");
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const unsigned team = blockIdx.x / a.team, member = blockIdx.x % a.team;
    const unsigned turns = (a.total - team + a.teams - 1) / a.teams;  // groups of this team
    const unsigned chunks = (turns * a.chunks_a_group - member + a.team - 1) / a.team;  // of this block

    if (threadIdx.x == 0) {
        for (int i = 0; i < PAIRS; ++i) set_up(full + i, 1), set_up(empty + i, 2 * WARP);
        for (int i = 0; i < GROUPS; ++i) set_up(sent + i, 1), set_up(ready + i, 1);
        before_copies();
    }
    __syncthreads();  // the barriers are set up

    if (warp == 0) {  // loads chunks
        if (lane > 0) return;
        Slot slot = {0};
        Place at(a, member);
        const Place by(a, a.team);
        for (unsigned i = 0; i < chunks; ++i, slot.step<PAIRS>(1)) {
            const int64_t begin = at.begin(a, team);
            const unsigned bytes = at.size(a) * 4;
            unsigned char* to = ring + slot.index * PAIR;
            at.step(a, by);
            wait(empty + slot.index, slot.parity ^ 1);
            expect(full + slot.index, 2 * bytes);
            copy(to, a.x + begin, bytes, full + slot.index);
            copy(to + CHUNK, a.gy + begin, bytes, full + slot.index);
        }
    } else if (warp == 1) {  // adds up the sums of all members of the team
        const float elements = (float)a.elements;
        for (unsigned turn = 0; turn < turns; ++turn) {
            const unsigned tag = tag_of(turn);
            const uint64_t* from = a.published + place_of(a, turn, team, 0);
            const float2 mean_rstd = a.means[a.group(turn, team)];
            float plain = 0.0f, weighted = 0.0f;
            // The others' are there at about the same time. By then the group whose place this one takes is done with.
            wait(sent + turn % GROUPS, turn / GROUPS % 2);
            uint64_t first[MEMBERS_A_LANE], second[MEMBERS_A_LANE];
            bool there;
            do {  // all members at once: one way to L2 and back, if they are there
                there = true;
#pragma unroll
                for (int k = 0; k < MEMBERS_A_LANE; ++k) {
                    const unsigned m = k * WARP + lane;
                    first[k] = second[k] = tag;
                    if (m < a.team) first[k] = peek(from + 2 * m), second[k] = peek(from + 2 * m + 1);
                }
#pragma unroll
                for (int k = 0; k < MEMBERS_A_LANE; ++k) {
                    there = there && (unsigned)first[k] == tag && (unsigned)second[k] == tag;
                }
            } while (!__all_sync(ALL_LANES, there));
#pragma unroll
            for (int k = 0; k < MEMBERS_A_LANE; ++k) {
                plain += __uint_as_float(first[k] >> 32);
                weighted += __uint_as_float(second[k] >> 32);
            }
            plain = warp_sum(plain) / elements;
            weighted = warp_sum(weighted) / elements;
            if (lane == 0) {
                const float mean = mean_rstd.x, rstd = mean_rstd.y;
                lines[turn % GROUPS] = {mean, rstd, plain * rstd, weighted * rstd * rstd};
                arrive(ready + turn % GROUPS);
            }
        }
    } else if (warp < 2 + SUMMING_WARPS) {  // the sums of this block's chunks, and of those of each group
        const unsigned mine = warp - 2;
        Slot slot = {mine};
        Place at(a, mine * a.team + member);
        const Place by(a, SUMMING_WARPS * a.team);
        for (unsigned turn = 0; turn < turns; ++turn) {
            const float2 mean_rstd = a.means[a.group(turn, team)];
            const unsigned first = a.first(turn, team);
            float2 all = {0.0f, 0.0f};  // of weight * gy and of weight * gy * xh, the same in each lane
            for (; at.turn == turn; slot.step<PAIRS>(SUMMING_WARPS)) {
                const int size = at.size(a);
                const float weight = a.weight[first + at.channel];
                float2* to =
                    a.sums + (int64_t)a.group(turn, team) * a.chunks_a_group + at.channel * a.chunks_a_plane + at.part;
                at.step(a, by);
                wait(full + slot.index, slot.parity);
                const float4* x = reinterpret_cast<const float4*>(ring + slot.index * PAIR);
                const float4* gy = x + CHUNK / 16;
                float2 sums = size == CHUNK_FLOATS ? sums_of_pair<true>(x, gy, 0, lane, mean_rstd.x)
                                                   : sums_of_pair<false>(x, gy, size / 4, lane, mean_rstd.x);
                before_copies();  // the next ones into this place must not overtake these reads
                arrive(empty + slot.index);
                sums.x = warp_sum(sums.x);
                sums.y = warp_sum(sums.y) * mean_rstd.y;
                if (lane == 0) *to = sums;
                all.x += weight * sums.x;
                all.y += weight * sums.y;
            }
            float2* of_warps = of_warp + turn % 2 * SUMMING_WARPS;  // two: one may still be read
            if (lane == 0) of_warps[mine] = all;
            meet<SUMMING_WARPS>();  // they have written
            if (mine == 0 && lane == 0) {
                for (int w = 1; w < SUMMING_WARPS; ++w) all.x += of_warps[w].x, all.y += of_warps[w].y;
                // Each word says by its tag that it is there: no fence between words and a flag is needed.
                uint64_t* to = a.published + place_of(a, turn, team, member);
                publish(to, all.x, tag_of(turn));
                publish(to + 1, all.y, tag_of(turn));
                arrive(sent + turn % GROUPS);
            }
        }
    } else {  // takes chunks into registers, frees their places, and writes gx once the group's line is there
        const unsigned mine = warp - 2 - SUMMING_WARPS;
        Slot slot = {mine};
        Place at(a, mine * a.team + member);
        const Place by(a, GX_WARPS * a.team);
        for (unsigned i = mine; i < chunks; i += GX_WARPS, slot.step<PAIRS>(GX_WARPS)) {
            const unsigned turn = at.turn;
            const float weight = a.weight[a.first(turn, team) + at.channel];
            float4* to = reinterpret_cast<float4*>(a.gx + at.begin(a, team));
            const int quads = at.size(a) / 4;
            at.step(a, by);
            wait(full + slot.index, slot.parity);
            const float4* from = reinterpret_cast<const float4*>(ring + slot.index * PAIR);
            float4 x[QUADS], gy[QUADS];
#pragma unroll
            for (int k = 0; k < QUADS; ++k) {
                if (k * WARP + lane < quads) x[k] = from[k * WARP + lane], gy[k] = from[CHUNK / 16 + k * WARP + lane];
            }
            before_copies();
            arrive(empty + slot.index);
            wait(ready + turn % GROUPS, turn / GROUPS % 2);
            const float4 found = lines[turn % GROUPS];
            const Line line = {found.x, weight * found.y, found.z, found.w};
#pragma unroll
            for (int k = 0; k < QUADS; ++k) {
                if (k * WARP + lane < quads) __stcs(to + k * WARP + lane, line.of(x[k], gy[k]));
            }
        }
    }
#endif
}
