// ---- a whole image on the chip ----

constexpr unsigned long long NOT_YET = ~0ull;  // a part that nobody wrote

// Blocks: `teams` times a block for each two rows. A team makes every teams-th image, and all blocks must be resident.
// parts (N, QUADS, strips): mean and squared deviations of four channels in two rows, NOT_YET at first: its own arrival
// says that it is there.
__global__ void __launch_bounds__(THREADS, 2)
    image_kernel(const float* x, const float* weight, const float* conv_bias, const float* bias, const float* scale,
                 const float* gn_weight, const float* gn_bias, unsigned long long* parts, float* y,
#if BACKWARD
                 float2* means,
#endif
                 Shape s, int teams, float eps) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    const int strips = s.OH / ROWS, y0 = blockIdx.x % strips * ROWS, team = blockIdx.x / strips;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int segment = warp % SEGMENTS, first = warp / SEGMENTS * 16 * TALL;  // what the warp makes
    const int row = segment / (SEGMENTS / ROWS), column = segment % (SEGMENTS / ROWS) * SEGMENT, count = s.OW - column;
    const int quad = warp * MINE / QUAD;  // four channels, of which the warp normalises some
    const int vectors = s.OW / 2;  // float4 of a channel's two rows
    const int quads = QUADS / s.groups, members = strips * quads;  // parts of a group
    const float elements = QUAD * ROWS * s.OW;  // of a part
    const float a_part = 1.0f / elements, a_member = 1.0f / members, a_group = a_part * a_member;
    const size_t image = (size_t)IN * s.H * s.W, plane = (size_t)s.OH * s.OW;
    const float4* mine = reinterpret_cast<const float4*>(shared.sigmoid + warp * MINE * S_CHANNEL) + lane;

    // Starts to bring X_ROWS rows of every channel: they are neighbours. 16 bytes a thread and channel.
    const auto start_copy = [&](int n) {
        if (n < s.N && threadIdx.x % X_ROW < s.W) {
            const size_t channel = (size_t)s.H * s.W * (THREADS / X_ROW);
            const int first = threadIdx.x / X_ROW;
            const float* from = x + n * image + ((size_t)first * s.H + y0) * s.W + threadIdx.x % X_ROW * 4;
            const unsigned to = (unsigned)__cvta_generic_to_shared(shared.x) + threadIdx.x * 16;
#pragma unroll
            for (int c = 0; c < IN * X_ROW / THREADS; ++c) {
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + c * THREADS * 16), "l"(from)
                             : "memory");
                from += channel;
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    bool fits = false;
    int one = 0;
    const auto finish_copy = [&] {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();  // everybody's pieces are there
        Column pixels;
        pixels.load(reinterpret_cast<const float*>(shared.x), s);
        pixels.measure(shared, Column::column() < s.W);
        __syncthreads();  // all have measured, and read what came
        fits = pixels.store<SPLIT == 3>(shared, one, shared.reach, Column::column() < s.W);
    };

    Weights w;
    start_copy(team);
    find_reach(weight, scale, shared);
    w.load<false>(weight, conv_bias, bias, scale, first, shared.line, warp % SEGMENTS == 0);
    finish_copy();
    __syncthreads();  // halves and shared.line are complete
    for (int n = team; n < s.N; n += teams) {
        if (count > 0) {
            float* to = shared.sigmoid + row * s.OW + column;
            make_segment<MOMENTS>(w, shared, fits, one, first, segment, row, column, count, to, x + n * image, weight,
                                  scale, s, y0 + row, column);
        }
        __syncthreads();  // sigmoids and moments are complete, and x has been used
        start_copy(n + teams);

        float mean = 0.0f;
        if (warp < QUADS) {  // a lane has one channel's segment
            const int inside = max(0, min(SEGMENT, s.OW - lane % (SEGMENTS / ROWS) * SEGMENT));
            const int size = lane < QUAD * SEGMENTS ? inside : 0;
            float2 m = make_float2(0.0f, 0.0f);
            if (size > 0) m = shared.moments[warp * QUAD + lane / SEGMENTS][lane % SEGMENTS];
            mean = warp_sum(m.x * size) * a_part;
            const float e = m.x - mean;
            const float off = warp_sum(e * size) * a_part;  // the mean's own rounding error
            float squares = warp_sum(m.y + e * e * size) - off * off * elements;
            mean += off;
            if (mean != mean || squares != squares) mean = squares = __uint_as_float(0x7fc00000);  // a NaN, not NOT_YET
            const unsigned long long part = (unsigned long long)__float_as_uint(squares) << 32 | __float_as_uint(mean);
            if (lane == 0) {
                asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(parts + ((size_t)n * QUADS + warp) * strips +
                                                                         y0 / ROWS),
                             "l"(part)
                             : "memory");
            }
        }

        if (n + teams < s.N) finish_copy();  // meanwhile the other parts arrive

        float rstd;
        {
            const unsigned long long* at = parts + ((size_t)n * QUADS + quad / quads * quads) * strips;
            float shift = 0.0f, deviations = 0.0f, between = 0.0f, within = 0.0f;
            for (int p0 = 0; p0 < members; p0 += 4 * WARP) {
                unsigned long long part[4];
                bool waiting;
                do {
                    waiting = false;
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const int p = p0 + i * WARP + lane;
                        part[i] = 0;
                        if (p < members) {
                            asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                                         : "=l"(part[i])
                                         : "l"(at + p)
                                         : "memory");
                        }
                        waiting = waiting || part[i] == NOT_YET;
                    }
                } while (__any_sync(ALL_LANES, waiting));
                if (p0 == 0) {  // about the mean of some
                    const float some = lane < members ? __uint_as_float((unsigned)part[0]) : 0.0f;
                    shift = warp_sum(some) * (1.0f / min(WARP, members));
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float e = p0 + i * WARP + lane < members ? __uint_as_float((unsigned)part[i]) - shift : 0.0f;
                    deviations += e;
                    between += e * e;
                    within += __uint_as_float((unsigned)(part[i] >> 32));
                }
            }
            deviations = warp_sum(deviations);
            between = warp_sum(between);
            within = warp_sum(within);
            const float off = deviations * a_member, squares = within + elements * (between - deviations * off);
            const float variance = squares < 0.0f ? 0.0f : squares * a_group;  // fmaxf would hide a NaN
            mean = shift + off;
            rstd = rsqrtf(variance + eps);
#if BACKWARD
            if (y0 == 0 && lane == 0) means[n * s.groups + quad / quads] = make_float2(mean, rstd);
#endif
        }
        float4* to = reinterpret_cast<float4*>(y + ((size_t)n * OUT + warp * MINE) * plane + (size_t)y0 * s.OW) + lane;
#pragma unroll
        for (int c = 0; c < MINE; ++c, to += plane / 4) {
            const int channel = warp * MINE + c;
            const float factor = rstd * gn_weight[channel], offset = gn_bias[channel] - mean * factor;
            float4 v[VECTORS];
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) v[k] = mine[c * (S_CHANNEL / 4) + k * WARP];
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                v[k].x = v[k].x * factor + offset;
                v[k].y = v[k].y * factor + offset;
                v[k].z = v[k].z * factor + offset;
                v[k].w = v[k].w * factor + offset;
                if (k * WARP + lane < vectors) __stcs(to + k * WARP, v[k]);
            }
        }
        __syncthreads();  // everybody is done with the sigmoids, and the next image's halves are complete
    }
#endif
}
