__global__ void __launch_bounds__(ONCE_THREADS, 1) groupnorm_once_kernel(const __grid_constant__ Once a) {
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) unsigned char ring[];
    uint64_t* full = reinterpret_cast<uint64_t*>(ring + SLOTS * CHUNK);  // a chunk is there
    uint64_t* empty = full + SLOTS;  // all lanes of the writing warp have read it
    uint64_t* sent = empty + SLOTS;  // this block's moments are published
    uint64_t* ready = sent + GROUPS;  // a group's statistics are there
    float2* statistics = reinterpret_cast<float2*>(ready + GROUPS);  // mean and rstd
    Moments* of_warp = reinterpret_cast<Moments*>(statistics + GROUPS);  // [2][MOMENT_WARPS]
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const unsigned team = blockIdx.x / a.team, member = blockIdx.x % a.team;
    const unsigned turns = (a.total - team + a.teams - 1) / a.teams;  // groups of this team
    const unsigned chunks = (turns * a.chunks_a_group - member + a.team - 1) / a.team;  // of this block

    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; ++i) set_up(full + i, 1), set_up(empty + i, WARP);
        for (int i = 0; i < GROUPS; ++i) set_up(sent + i, 1), set_up(ready + i, 1);
        before_copies();
    }
    __syncthreads();  // the barriers are set up

    if (warp == 0) {  // loads chunks
        if (lane > 0) return;
        Slot slot = {0};
        Place at(a, member);
        const Place by(a, a.team);
        for (unsigned i = 0; i < chunks; ++i, slot.step<SLOTS>(1)) {
            const float* from = a.x + at.begin(a, team);
            const unsigned bytes = at.size(a) * 4;
            at.step(a, by);
            wait(empty + slot.index, slot.parity ^ 1);
            expect(full + slot.index, bytes);
            copy(ring + slot.index * CHUNK, from, bytes, full + slot.index);
        }
    } else if (warp == 1) {  // merges the moments of all members of the team
        for (unsigned turn = 0; turn < turns; ++turn) {
            const unsigned tag = tag_of(turn);
            const uint64_t* from = a.published + place_of(a, turn, team, 0);
            float count[MEMBERS_A_LANE], mean[MEMBERS_A_LANE], all, sum, squares;
            // The others' are there at about the same time. By then the group whose place this one takes is done with.
            wait(sent + turn % GROUPS, turn / GROUPS % 2);
            bool there;
            do {  // all members at once: one way to L2 and back, if they are there
                there = true;
                squares = all = 0.0f;
                uint64_t first[MEMBERS_A_LANE], second[MEMBERS_A_LANE];
#pragma unroll
                for (int k = 0; k < MEMBERS_A_LANE; ++k) {
                    const unsigned m = k * WARP + lane;
                    first[k] = second[k] = (uint64_t)tag << 16;
                    if (m < a.team) first[k] = peek(from + 2 * m), second[k] = peek(from + 2 * m + 1);
                }
#pragma unroll
                for (int k = 0; k < MEMBERS_A_LANE; ++k) {
                    there = there && (unsigned)first[k] >> 16 == tag && (unsigned)second[k] >> 16 == tag;
                    all += count[k] = (float)((unsigned)first[k] & 0xffff);
                    mean[k] = __uint_as_float(first[k] >> 32);
                    squares += __uint_as_float(second[k] >> 32);
                }
            } while (!__all_sync(ALL_LANES, there));
            // Distances from one of the means, so that a large mean costs no digits.
            const float pivot = __shfl_sync(ALL_LANES, mean[0], 0);
            sum = 0.0f;
#pragma unroll
            for (int k = 0; k < MEMBERS_A_LANE; ++k) {
                mean[k] -= pivot;
                if (count[k] > 0.0f) sum += count[k] * mean[k];
            }
            all = warp_sum(all);
            const float off = warp_sum(sum) / all;
#pragma unroll
            for (int k = 0; k < MEMBERS_A_LANE; ++k) {
                if (count[k] > 0.0f) squares += count[k] * (mean[k] - off) * (mean[k] - off);
            }
            squares = warp_sum(squares);
            if (lane == 0) {
                const float2 found = {pivot + off, 1.0f / sqrtf(squares / all + a.eps)};
                statistics[turn % GROUPS] = found;
                arrive(ready + turn % GROUPS);
#if BACKWARD
                if (member == 0) a.means[turn * a.teams + team] = found;  // backward wants them, too
#endif
            }
        }
    } else if (warp < 2 + MOMENT_WARPS) {  // the moments of this block's chunks of each group
        const unsigned mine = warp - 2;
        Slot slot = {mine};
        Place at(a, mine * a.team + member);
        const Place by(a, MOMENT_WARPS * a.team);
        for (unsigned turn = 0; turn < turns; ++turn) {
            Moments m = {0.0f, 0.0f, 0.0f};
            for (; at.turn == turn; slot.step<SLOTS>(MOMENT_WARPS)) {
                const int size = at.size(a);
                at.step(a, by);
                wait(full + slot.index, slot.parity);
                const float4* chunk = reinterpret_cast<const float4*>(ring + slot.index * CHUNK);
                const bool whole = size == CHUNK_FLOATS;
                m = merged(m, whole ? of_chunk<true>(chunk, 0, lane) : of_chunk<false>(chunk, size / 4, lane));
            }
            for (int offset = WARP / 2; offset > 0; offset /= 2) {
                m = merged(m,
                           {__shfl_down_sync(ALL_LANES, m.count, offset), __shfl_down_sync(ALL_LANES, m.mean, offset),
                            __shfl_down_sync(ALL_LANES, m.squares, offset)});
            }
            Moments* of_warps = of_warp + turn % 2 * MOMENT_WARPS;  // two: one may still be read
            if (lane == 0) of_warps[mine] = m;
            meet<MOMENT_WARPS>();  // they have written
            if (mine == 0 && lane == 0) {
                for (int w = 1; w < MOMENT_WARPS; ++w) m = merged(m, of_warps[w]);
                // Each word says by its tag that it is there: no fence between words and a flag is needed.
                const unsigned low = tag_of(turn) << 16 | (unsigned)m.count;
                uint64_t* to = a.published + place_of(a, turn, team, member);
                publish(to, m.mean, low);
                publish(to + 1, m.squares, low);
                arrive(sent + turn % GROUPS);
            }
        }
    } else {  // writes results and frees chunks
        const unsigned mine = warp - 2 - MOMENT_WARPS;
        Slot slot = {mine};
        Place at(a, mine * a.team + member);
        const Place by(a, WRITING_WARPS * a.team);
        unsigned turn = UINT_MAX, channel = 0, first = 0;  // first: channel of the image that the group begins with
        float mean = 0.0f, rstd = 0.0f, weight = 0.0f, bias = 0.0f;
        for (unsigned i = mine; i < chunks; i += WRITING_WARPS, slot.step<SLOTS>(WRITING_WARPS)) {
            const bool new_group = at.turn != turn;
            if (new_group) turn = at.turn, first = (turn * a.teams + team) % a.groups * a.channels;
            if (new_group || at.channel != channel) {
                channel = at.channel;
                weight = a.weight[first + channel];
                bias = a.bias[first + channel];
            }
            float4* to = reinterpret_cast<float4*>(a.y + at.begin(a, team));
            const int quads = at.size(a) / 4;
            at.step(a, by);
            if (new_group) {
                wait(ready + turn % GROUPS, turn / GROUPS % 2);
                mean = statistics[turn % GROUPS].x;
                rstd = statistics[turn % GROUPS].y;
            }
            wait(full + slot.index, slot.parity);  // long there: what was copied is now seen by this warp, too
            const float4* from = reinterpret_cast<const float4*>(ring + slot.index * CHUNK);
            float4 v[QUADS];
#pragma unroll
            for (int k = 0; k < QUADS; ++k) {
                if (k * WARP + lane < quads) v[k] = from[k * WARP + lane];
            }
            before_copies();  // the next one into this place must not overtake these reads
            arrive(empty + slot.index);
            const float w = weight * rstd;
#pragma unroll
            for (int k = 0; k < QUADS; ++k) {
                if (k * WARP + lane >= quads) continue;
                __stcs(to + k * WARP + lane, float4{(v[k].x - mean) * w + bias, (v[k].y - mean) * w + bias,
                                                    (v[k].z - mean) * w + bias, (v[k].w - mean) * w + bias});
            }
        }
    }
#endif
}
