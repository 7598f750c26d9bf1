// A unit of gradient_kernel in double, from global memory, for images in which halves lose what counts: a number far
// beyond all others takes their digits, in v and so which one is the largest, and what it is itself multiplied by. Only
// gv is in shared memory, as floats, of so many channels at a time as there is room for. `sums`: a double for each of
// the block's part of the weight's gradient. All threads must call it; it begins and ends with a barrier.
__device__ __noinline__ void outlying_unit(Strip& strip, const float* image, const float* weight, const float* bias,
                                           const float* gamma, const float* factor, const float2* means,
                                           const float4* terms, const float* gm, float* gx, float* parts, bool add,
                                           int n, int across, int part, int channels_a_group, const Sweep& sweep,
                                           const Shape& s) {
    constexpr int CHANNELS = BOTH ? CHUNK : CHUNK / 2, TERMS = TAPS * CHUNK * IN, SHARE = TERMS / G_THREADS;
    static_assert(CHANNELS * 4 * WIDE * sizeof(float) <= sizeof(strip.gv), "gv of a strip as floats");
    float* const gv = reinterpret_cast<float*>(strip.gv);  // [channel][4][WIDE]
    const int x0 = across * STEP, columns = min(WIDE, s.OW - x0), PH = s.OH / 4;
    const int halo = across > 0 ? 4 : 0;  // columns that belong to the strip to the left
    const int begin = (int64_t)part * sweep.strips / sweep.parts;
    const int end = (int64_t)(part + 1) * sweep.strips / sweep.parts, start = begin - (part > 0);
    double sums[SHARE] = {};
    for (int k = start; k < end; ++k) {
        const int y0 = k * 4, rows = min(4, s.OH - y0);
        for (int first = 0; first < s.OC; first += CHANNELS) {
            const int channels = min(CHANNELS, s.OC - first);
            __syncthreads();  // nobody reads the last gv any more
            for (int i = threadIdx.x; i < channels * STRIP_WINDOWS; i += G_THREADS) {  // one window a thread
                const int window = i % STRIP_WINDOWS, c = first + i / STRIP_WINDOWS;
                const int64_t group = (int64_t)n * (s.OC / channels_a_group) + c / channels_a_group;
                const double mean = means[group].x, rstd = means[group].y, a = terms[group].x, b = terms[group].y;
                const double sign = strip.up[c] < 0.0f ? -1.0 : 1.0;
                float* const to = gv + i / STRIP_WINDOWS * (4 * WIDE) + window * 4;
                double best = -INFINITY;
                int place = 0;
                for (int p = 0; p < 16; ++p) {
                    const int row = p / 4, column = window * 4 + p % 4;
                    if (row >= rows || column >= columns) continue;
                    const double d = exact_v(image, weight + c * s.C * TAPS, bias[c], y0 + row, x0 + column, s) - mean;
                    if (d * sign > best) best = d * sign, place = p;
                    to[row * WIDE + p % 4] = -(a + b * (d * rstd)) * rstd;
                }
                if (k * 4 + 3 >= s.OH || window * 4 + 3 >= columns) continue;  // no window
                const int64_t line = (((int64_t)n * s.OC + c) * PH + k) * sweep.across + across;
                const float of_window = gm[line * STRIP_WINDOWS + window / 8 * 8 + window % 2 * 4 + window % 8 / 2];
                to[place / 4 * WIDE + place % 4] += (double)gamma[c] * factor[c] * of_window * rstd;
            }
            __syncthreads();  // gv is complete
            for (int i = threadIdx.x; gx != nullptr && i < s.C * WIDE; i += G_THREADS) {
                const int column = i % WIDE;
                if (column < halo || x0 + column >= s.W) continue;
                for (int r = 0; r < 6; ++r) {
                    const int row = y0 + r;
                    if (row < begin * 4 || row >= (end == sweep.strips ? s.H : end * 4)) continue;
                    float& to = gx[(((int64_t)n * s.C + i / WIDE) * s.H + row) * s.W + x0 + column];
                    double sum = first > 0 || (r < 2 && k > start) ? to : 0.0f;  // what the strip above gave
                    for (int c = 0; c < channels; ++c) {
                        const float* w = weight + ((first + c) * s.C + i / WIDE) * TAPS;
                        for (int tap = 0; tap < TAPS; ++tap) {
                            const int y = r - tap / 3, x = column - tap % 3;
                            if (y < 0 || y >= rows || x < 0 || x >= columns) continue;
                            sum += (double)w[tap] * gv[(c * 4 + y) * WIDE + x];
                        }
                    }
                    to = sum;
                }
            }
            for (int i = 0; parts != nullptr && k >= begin && i < SHARE; ++i) {
                const int at = i * G_THREADS + threadIdx.x, tap = at / (CHUNK * IN), c = at / IN % CHUNK - first;
                if (c < 0 || c >= channels || at % IN >= s.C) continue;
                const float* from = image + ((int64_t)(at % IN) * s.H + y0 + tap / 3) * s.W + x0 + tap % 3;
                double sum = 0.0;
                for (int row = 0; row < rows; ++row, from += s.W) {
                    for (int x = halo; x < columns; ++x) sum += gv[(c * 4 + row) * WIDE + x] * as_factor(from[x]);
                }
                sums[i] += sum;
            }
        }
    }
    __syncthreads();  // nobody reads gv any more, and the last unit's sums are there
    for (int i = 0; parts != nullptr && i < SHARE; ++i) {
        float& to = parts[(int64_t)blockIdx.x * TERMS + i * G_THREADS + threadIdx.x];
        to = add ? to + sums[i] : sums[i];
    }
    for (int i = threadIdx.x; i < (int)(sizeof(strip.gv) / 16); i += G_THREADS) strip.gv[i] = {};  // as it was
    __syncthreads();  // all is there for the next unit
}

// gx (N, C, H, W), and of each block a part of the weight's gradient, (blocks, 9, CHUNK, IN); null where one is not
// needed. Blocks sweep down images, or parts of them, one strip after another: v once more, then gv, which never leaves
// shared memory. A strip's gv reaches two rows of gx further than the strip: those wait in registers for the next one.
// largest: of x, by forward's tiles.
__global__ void __launch_bounds__(G_THREADS, G_BLOCKS)
    gradient_kernel(const float* x, const float* weight, const float* bias, const float* gamma, const float* factor,
                    const float2* means, const float4* terms, const float* largest, const float* gm, float* gx,
                    float* parts, int channels_a_group, Sweep sweep, Shape s) {
#ifdef TENSOR_CORES
    extern __shared__ uint4 shared[];
    Strip& strip = *reinterpret_cast<Strip*>(shared);
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const int groups = s.OC / channels_a_group;
    const bool vector = s.W % 4 == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0;
    for (int i = threadIdx.x; i < (int)(sizeof(strip.gv) / 16); i += G_THREADS) strip.gv[i] = {};
    if constexpr (AHEAD) {
        for (int i = threadIdx.x; i < IN * X_ROWS * RAW; i += G_THREADS) strip.raw[i] = 0.0f;  // not all may come
    }
    const int weight_exponent = bring_weights(strip, weight, gamma, factor, s);
    for (int unit = blockIdx.x; unit < sweep.units; unit += gridDim.x) {
        const int n = unit / (sweep.across * sweep.parts), across = unit / sweep.parts % sweep.across;
        const int part = unit % sweep.parts, x0 = across * STEP, columns = min(WIDE, s.OW - x0);
        const int begin = (int64_t)part * sweep.strips / sweep.parts;
        const int end = (int64_t)(part + 1) * sweep.strips / sweep.parts;
        const float* image = x + (int64_t)n * s.C * s.H * s.W;
        float usual;
        bool outlying;
        const float most = largest_of_image(largest, n, s, usual, outlying);
        if (outlying) {
            outlying_unit(strip, image, weight, bias, gamma, factor, means, terms, gm, gx, parts, unit >= gridDim.x, n,
                          across, part, channels_a_group, sweep, s);
            continue;
        }
        float bound = 0.0f;
        for (int i = lane; i < groups; i += WARP) {
            const float of_group = terms[(int64_t)n * groups + i].z;
            if (of_group < INFINITY) bound = fmaxf(bound, of_group);
        }
        bound = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(bound)));
        const int x_exponent = exponent_for(most), exponent = exponent_of_gradient(bound);
        const float x_up = power_of_two(x_exponent), back = power_of_two(-exponent);
        const float middle = terms[(int64_t)n * groups].w;  // x is taken about it
        __syncthreads();  // weights are there, and nobody reads the last unit's strip any more
        if constexpr (AHEAD) bring_x(strip, image, x, (begin - (part > 0)) * 4, x0, vector, s);
        if (threadIdx.x < CHUNK) {
            const int c = threadIdx.x;
            float4 of = {};
            if (c < s.OC) {
                const int64_t group = (int64_t)n * groups + c / channels_a_group;
                const float2 m = means[group];
                const float4 ab = terms[group];
                const float unit_of_gv = m.y * power_of_two(exponent), b = ab.y * unit_of_gv;
                of.x = -b * (m.y * power_of_two(-x_exponent) / strip.up[c]);
                of.y = -(ab.x * unit_of_gv + b * ((fmaf(middle, strip.whole[c], bias[c]) - m.x) * m.y));
                of.z = gamma[c] * factor[c] * unit_of_gv;
                of.w = 0x1p-22f * (strip.magnitude[c] * fabsf(strip.up[c])) * ((most + fabsf(middle)) * x_up);
            }
            strip.of_channel[c] = of;
        }
        float total[TAPS][4] = {};  // of the weight's gradient: channels g, g + 8 of gv and 2 t, 2 t + 1 of x
        float sum[6][4] = {};  // of gx: pixels g, g + 8 and channels 2 t, 2 t + 1
        const int64_t plane = (int64_t)s.H * s.W;
        float* const to_x = gx + ((int64_t)n * s.C + 2 * t) * plane + x0 + warp * 16 + g;
        bool mine[4];  // what the lane writes of these
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int column = warp * 16 + g + i / 2 * 8;
            mine[i] = 2 * t + i % 2 < s.C && x0 + column < s.W && (across == 0 || column >= 4);
        }
        for (int k = begin - (part > 0); k < end; ++k) {
            const int y0 = k * 4;
            if constexpr (AHEAD) wait_for_copies();
            __syncthreads();  // x is there, and nobody reads the last strip any more
            halve_x(strip, image, y0, x0, x_up, -middle * x_up, s);
            __syncthreads();  // x is complete in halves
            if constexpr (AHEAD) {
                if (k + 1 < end) bring_x(strip, image, x, y0 + 4, x0, vector, s);
            }
            make_gv(strip, image, weight, gm, n, y0, across, min(4, s.OH - y0), columns, sweep, s);
            __syncthreads();  // gv is complete
            if (gx != nullptr && x0 + warp * 16 < s.W) {
                add_gx(strip, sum);
                const int rows = k < begin ? 0 : min(k + 1 == sweep.strips ? 6 : 4, s.H - y0);
                const float down = power_of_two(-weight_exponent);
                float* to = to_x + (int64_t)y0 * s.W;
#pragma unroll
                for (int r = 0; r < 6; ++r, to += s.W) {
                    if (r >= rows) break;
                    if (mine[0]) to[0] = sum[r][0] * back * down;
                    if (mine[1]) to[plane] = sum[r][1] * back * down;
                    if (mine[2]) to[8] = sum[r][2] * back * down;
                    if (mine[3]) to[plane + 8] = sum[r][3] * back * down;
                }
#pragma unroll
                for (int i = 0; i < 24; ++i) sum[i / 4][i % 4] = i < 8 ? sum[i / 4 + 4][i % 4] : 0.0f;
            }
            if (parts != nullptr && k >= begin) {
                if (across > 0) {  // the halo's weight was counted in the strip to the left
                    __syncthreads();  // nobody reads gv for gx any more
                    for (int i = threadIdx.x; i < (BOTH ? 2 : 1) * CHUNK / 8 * 16; i += G_THREADS) {
                        strip.gv[i / 16 * G_PLANE + i / 4 % 4 * COLUMNS + 2 + i % 4] = {};
                    }
                    __syncthreads();  // the halo is gone
                }
                add_weight(strip, columns, total);
            }
        }
        if (parts == nullptr) continue;
        float* to = parts + ((int64_t)blockIdx.x * TAPS * CHUNK + warp % (CHUNK / 16) * 16 + g) * IN + 2 * t;
        const float down = back * power_of_two(-x_exponent);
        for (int half = 0; half < G_WARPS / (CHUNK / 16); ++half) {  // one after another, in their order
            __syncthreads();  // the half before is there
            if (warp / (CHUNK / 16) != half) continue;
            const bool add = half > 0 || unit >= gridDim.x;
#pragma unroll
            for (int i = 0; i < 2 * TAPS; ++i) {
                float2& at = *reinterpret_cast<float2*>(to + (i / 2 * CHUNK + i % 2 * 8) * IN);
                const float2 before = add ? at : make_float2(0.0f, 0.0f);
                at = {fmaf(total[i / 2][i % 2 * 2], down, before.x), fmaf(total[i / 2][i % 2 * 2 + 1], down, before.y)};
            }
        }
    }
#endif
}
