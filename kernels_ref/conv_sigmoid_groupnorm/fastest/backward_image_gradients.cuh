// The file stays whole: it is one kernel, whose phases share registers and shared memory.
//
// As in image_kernel, a team of blocks makes every teams-th image, a block two of its rows. From gy and s = sigmoid(v *
// scale), which is made anew from x, each block's part of a and b goes to all others of the team; then
//     gq = (gy * gn_weight - a - (s - mean) * rstd * b) * rstd * s * (1 - s)
// takes gy's place in shared memory, in halves: gq * x summed over the pixels is gconv_weight without its scale, and
// gq times weight and scale is gx. Two rows of gx need the block before's gq, too: that block sends its products by
// `edges`, each with the image's number, so that no fence is needed, which would empty the cache of the weights.
// gv itself, and v, are needed nowhere: sums of gv are scale times those of gq, and a sum of gq * v is what the sums of
// gq * x make with the weights. This v has to be the one that s was made of: where gq is not 0 an exact v may be far
// away. So in the tf32 class, where s knows no lower halves, the weights' are left out, and x's wherever it counts; not
// where sums are made in double, for there it knows both.
__global__ void __launch_bounds__(THREADS, 2)
    image_gradients_kernel(const float* x, const float* gy, const float* weight, const float* scale,
                           const float* gn_weight, const float2* means, const Packed* packed, unsigned long long* parts,
                           unsigned long long* edges, float* gx, float* sums, Shape s, int teams) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    GradientShared& shared = *reinterpret_cast<GradientShared*>(memory);
    const int strips = s.OH / ROWS, strip = blockIdx.x % strips, y0 = strip * ROWS, team = blockIdx.x / strips;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4, matrix = lane / 8;
    const int row = warp / (WARPS / ROWS), column = warp % (WARPS / ROWS) * PIXELS;  // where the warp's pixels begin
    const int count = s.OW - column - g;  // of them exist, counted from this lane's first
    const bool whole = column + PIXELS <= s.OW;
    const int quads = QUADS / s.groups, members = strips * quads;  // parts of a group
    const float a_group = 1.0f / ((float)QUAD * quads * s.OH * s.OW);
    const size_t image = (size_t)IN * s.H * s.W, plane = (size_t)s.OH * s.OW;
    const unsigned x_at = (unsigned)__cvta_generic_to_shared(shared.x);
    const unsigned q_at = (unsigned)__cvta_generic_to_shared(shared.gy);
    const float* gy_floats = reinterpret_cast<const float*>(shared.gy);

    // Starts to bring X_ROWS rows of every channel of x: they are neighbours.
    const auto start_x = [&](int n) {
        if (n < s.N && threadIdx.x % X_ROW < s.W) {
            const float* from = x + n * image + (size_t)y0 * s.W + threadIdx.x % X_ROW * 4;
#pragma unroll
            for (int c = 0; c < IN; ++c) {
                if (c % (THREADS / X_ROW) != threadIdx.x / X_ROW) continue;
                asm volatile(
                    "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(x_at + (c * X_ROW + threadIdx.x % X_ROW) * 16),
                    "l"(from + (size_t)c * s.H * s.W)
                    : "memory");
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    // And ROWS rows of every channel of gy, a warp its MINE channels.
    const auto start_gy = [&](int n) {
        if (n < s.N) {
            const float* from = gy + ((size_t)n * OUT + warp * MINE) * plane + (size_t)y0 * s.OW + lane * 4;
            unsigned to = q_at + (warp * MINE * GY_CHANNEL + lane * 4) * 4;
#pragma unroll
            for (int c = 0; c < MINE; ++c, from += plane, to += GY_CHANNEL * 4) {
#pragma unroll
                for (int k = 0; k < VECTORS; ++k) {
                    const int bytes = k * WARP + lane < s.OW / 2 ? 16 : 0;  // and zeros where the rows end
                    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + k * WARP * 16),
                                 "l"(bytes ? from + k * WARP * 4 : from), "r"(bytes)
                                 : "memory");
                }
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    bool fits = false;
    int one = 0;
    // x has been brought, gy perhaps not yet: makes halves of x.
    const auto finish_x = [&] {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();  // everybody's pieces are there
        Column pixels;
        if (Column::column() < s.W)
            pixels.load(reinterpret_cast<const float*>(shared.x), s);
        else
            pixels.clear();  // times gq, which is 0 there: may be anything but NaN
        pixels.measure(shared);
        __syncthreads();  // all have measured, and read what came
        fits = pixels.store<true>(shared, one, packed->reach);
        if (threadIdx.x < 2) {  // pixels that are only read for results that nobody keeps
            shared.x[X_ROWS * X_ROW + threadIdx.x] = make_uint4(0, 0, 0, 0);
            shared.x[LOW / 16 + X_ROWS * X_ROW + threadIdx.x] = make_uint4(0, 0, 0, 0);
        }
    };

    float total[MY_SUMS] = {};  // of gq * x: this thread's fragments
    float of_gy = 0.0f, of_gy_sh = 0.0f;  // of channel warp * MINE + lane / WARPS, the same in 8 lanes
    start_x(team);
    start_gy(team);
    finish_x();
    __syncthreads();  // halves are complete
    for (int n = team; n < s.N; n += teams) {
        const bool halves = fits && packed->conv_fits;
        if (threadIdx.x < QUADS) shared.means[threadIdx.x] = means[n * s.groups + threadIdx.x / quads];

        // s: of channels 8 o + 2 t (and + 1) at pixels 16 p + g (and + 8, last two)
        float q[4][4][4];
        if (column >= s.OW) {
#pragma unroll
            for (int i = 0; i < 64; ++i) q[i / 16][i / 4 % 4][i % 4] = 0.0f;
        } else if (halves) {
            // matrices: 8 pixels at a tap, 8 more, and both at the other tap
            const unsigned first = x_at + (row * X_ROW + column + lane % 8 + matrix % 2 * 8) * 16;
#pragma unroll
            for (int step = 0; step < 4; ++step) {
                const unsigned from = first + (step < 3 ? step + matrix / 2 * X_ROW : 2 * X_ROW + matrix / 2) * 16;
                unsigned w[4][2], l[4][2] = {};
                spread(w, packed->conv[step][0][0][lane], packed->conv[step][1][0][lane]);
                if (SPLIT == 3) spread(l, packed->conv[step][0][1][lane], packed->conv[step][1][1][lane]);
#pragma unroll
                for (int p = 0; p < 4; ++p) {
                    unsigned high[4], low[4];
                    load_matrices(high, from + p * 256);
                    if (SPLIT == 3) load_matrices(low, from + p * 256 + LOW);
                    float part[4][4];
                    if (SPLIT == 3) {
#pragma unroll
                        for (int o = 0; o < 4; ++o) multiply_first(part[o], high, l[o][0], l[o][1]);
#pragma unroll
                        for (int o = 0; o < 4; ++o) multiply(part[o], low, w[o][0], w[o][1]);
                    }
#pragma unroll
                    for (int o = 0; o < 4; ++o) finish_product(q[p][o], part[o], high, w[o][0], w[o][1], step == 0);
                }
            }
            const unsigned from = first + (2 * X_ROW + 2) * 16 + matrix / 2 * LOW;  // the last tap, upper and lower
            const uint4 w = packed->conv_last[0][lane], l = packed->conv_last[1][lane];
#pragma unroll
            for (int p = 0; p < 4; ++p) {
                unsigned last[4];
                load_matrices(last, from + p * 256);
                const unsigned high[2] = {last[0], last[1]}, low[2] = {last[2], last[3]};
                const unsigned w8[4] = {w.x, w.y, w.z, w.w}, l8[4] = {l.x, l.y, l.z, l.w};
                float part[4][4] = {};
                if (SPLIT == 3) {
#pragma unroll
                    for (int o = 0; o < 4; ++o) multiply(part[o], high, l8[o]);
#pragma unroll
                    for (int o = 0; o < 4; ++o) multiply(part[o], low, w8[o]);
                }
#pragma unroll
                for (int o = 0; o < 4; ++o) {
                    multiply(SPLIT == 3 ? part[o] : q[p][o], high, w8[o]);
                    if (SPLIT == 3) add(q[p][o], part[o]);
                }
            }
        } else {
            float sums[64];
            convolve_pixels_slowly(x + n * image, weight, s.H, s.W, y0 + row, column, sums);
#pragma unroll
            for (int i = 0; i < 64; ++i) q[i / 16][i / 4 % 4][i % 4] = sums[i];
        }
        const float x_unit = halves ? power_of_two(one) : 1.0f;
#pragma unroll
        for (int o = 0; o < 4; ++o) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int channel = 8 * o + 2 * t + j;
                const float2 line = packed->line[channel];
                const float factor = (halves ? line.x : -1.4426950408889634f * scale[channel]) * x_unit;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    float& v = q[i / 2][o][i % 2 * 2 + j];
                    v = sigmoid_of_exponent(v * factor + line.y);
                }
            }
        }

        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();  // gy and the means are there
        const float* gy_mine = gy_floats + 2 * t * GY_CHANNEL + row * s.OW + column + g;
        if (whole)
            sums_of_gy<true>(q, gy_mine, count, shared);
        else
            sums_of_gy<false>(q, gy_mine, count, shared);
        __syncthreads();  // every warp's sums are there
        {
            float2 m = shared.of_gy[warp * QUAD + lane / WARPS][lane % WARPS];
            const float2 mean = shared.means[warp];
#pragma unroll
            for (int offset = 1; offset < WARPS; offset *= 2) {
                m.x += __shfl_xor_sync(ALL_LANES, m.x, offset);
                m.y += __shfl_xor_sync(ALL_LANES, m.y, offset);
            }
            m.y *= mean.y;
            of_gy += m.x;
            of_gy_sh += m.y;
            const float gamma = gn_weight[warp * QUAD + lane / WARPS];
            m.x *= gamma;
            m.y *= gamma;
#pragma unroll
            for (int offset = WARPS; offset < WARP; offset *= 2) {
                m.x += __shfl_xor_sync(ALL_LANES, m.x, offset);
                m.y += __shfl_xor_sync(ALL_LANES, m.y, offset);
            }
            if (m.x != m.x || m.y != m.y) m.x = m.y = __uint_as_float(0x7fc00000);  // a NaN, not NOT_YET
            const unsigned long long part = (unsigned long long)__float_as_uint(m.y) << 32 | __float_as_uint(m.x);
            if (lane == 0) {
                asm volatile(
                    "st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(parts + ((size_t)n * QUADS + warp) * strips + strip),
                    "l"(part)
                    : "memory");
            }
            // every block's part is awaited
            const unsigned long long* at = parts + ((size_t)n * QUADS + warp / quads * quads) * strips;
            float a = 0.0f, b = 0.0f;
            for (int p0 = 0; p0 < members; p0 += 4 * WARP) {
                unsigned long long others[4];
                bool waiting;
                do {
                    waiting = false;
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const int p = p0 + i * WARP + lane;
                        others[i] = 0;
                        if (p < members) {
                            asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                                         : "=l"(others[i])
                                         : "l"(at + p)
                                         : "memory");
                        }
                        waiting = waiting || others[i] == NOT_YET;
                    }
                } while (__any_sync(ALL_LANES, waiting));
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    a += __uint_as_float((unsigned)others[i]);
                    b += __uint_as_float((unsigned)(others[i] >> 32));
                }
            }
            a = warp_sum(a) * a_group;
            b = warp_sum(b) * a_group;
            b *= mean.y * mean.y;
            if (lane == 0) shared.terms[warp] = make_float4(mean.y, mean.x * b - a * mean.y, b, 0.0f);
        }
        __syncthreads();  // a and b are there

        float most = 0.0f;
#pragma unroll
        for (int o = 0; o < 4; ++o) {
            const float4 k = shared.terms[2 * o + t / 2];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float gamma = gn_weight[8 * o + 2 * t + j] * k.x;
#pragma unroll
                for (int i = 0; i < 8; ++i) {  // beyond the row's end, too: into places that get zeros below
                    float& v = q[i / 2][o][i % 2 * 2 + j];
                    const float up = gy_mine[(8 * o + j) * GY_CHANNEL + i / 2 * 16 + i % 2 * 8];
                    const float gs = up * gamma + (k.y - v * k.z);
                    v = gs * (v - v * v);
                    most = fmaxf(most, fabsf(v));
                }
            }
        }
        most = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(most)));
        if (lane == 0) shared.warp_max[warp] = most;
        __syncthreads();  // gy has been used, and every warp's largest is there
#pragma unroll
        for (int i = 0; i < WARPS; ++i) most = fmaxf(most, shared.warp_max[i]);
        int q_one;
        const bool q_fits = fits_halves(most, q_one) && fits && packed->gx_fits;
        // From here on gq in halves, 0 beyond its rows' ends.
        if (q_fits) {
            const float unit = power_of_two(-q_one);
            unsigned* to = reinterpret_cast<unsigned*>(shared.gy) + (row * Q_ROW + 2 + column + g) * 4 + t;
#pragma unroll
            for (int i = 0; i < 32; ++i) {
                const int p = i / 8, o = i / 2 % 4, h = i % 2;
                unsigned high, low;
                split(q[p][o][2 * h] * unit, q[p][o][2 * h + 1] * unit, high, low);
                to[(o * Q_PLANE + 16 * p + 8 * h) * 4] = high;
                to[(o * Q_PLANE + 16 * p + 8 * h + Q_LOW) * 4] = low;
            }
            if (!whole) {
#pragma unroll
                for (int p = 0; p < PIXELS; p += 8) {
                    if (p < count) continue;
                    for (int o = 0; o < 8; ++o) to[(o * Q_PLANE + p) * 4] = 0;  // both halves
                }
            }
            if (warp == 0) {  // zeros before the rows: 2 of 2 rows of 4 planes of both halves
                shared.gy[lane / 4 * Q_PLANE + lane / 2 % 2 * Q_ROW + lane % 2] = make_uint4(0, 0, 0, 0);
            }
        } else {
            float* to = reinterpret_cast<float*>(shared.gy) + row * X_ROW + column + g;
#pragma unroll
            for (int i = 0; i < 64; ++i) {
                const int channel = i / 4 % 4 * 8 + 2 * t + i % 2, p = i / 16 * 16 + i % 4 / 2 * 8;
                to[channel * GY_CHANNEL + p] = p < count ? q[i / 16][i / 4 % 4][i % 4] : 0.0f;
            }
        }
        __syncthreads();  // gq is complete

        if (q_fits) {
            // Warps: 16 channels of gq, and 64 columns of both rows. x's rows 0 to 3 meet gq's rows 0 and 1.
            const int half = warp % 2, part = warp / 2;
            // of channels 16 half + g (and + 8, last two) of gq, 2 t and 2 t + 1 of x; then of gq alone, where t is 0
            float sum[TAPS + 1][4] = {};
            float of_low[TAPS][4] = {};  // in the tf32 class: of lower halves of x, which no sigmoid has seen
            const unsigned ones = g == 0 ? 0x3c003c00 : 0;
#pragma unroll 1
            for (int j = part * PIXELS; j < min(part * PIXELS + PIXELS, s.OW); j += 16) {
                // gq, transposed: 8 channels at 8 pixels, 8 channels more, and both at the next 8 pixels
                const unsigned at = q_at + ((half * 2 + matrix % 2) * Q_PLANE + 2 + j + lane % 8 + matrix / 2 * 8) * 16;
                unsigned high[ROWS][4], low[ROWS][4];
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    load_transposed(high[r], at + r * Q_ROW * 16);
                    load_transposed(low[r], at + (r * Q_ROW + Q_LOW) * 16);
                }
                float alone[4];
                multiply_first(alone, low[0], ones, ones);
                multiply(alone, low[1], ones, ones);
                multiply(alone, high[0], ones, ones);
                multiply(alone, high[1], ones, ones);
                sum[TAPS][0] += alone[0];
                sum[TAPS][2] += alone[2];
                // x, transposed: 8 pixels, 8 more, and the lower halves of both
                const unsigned from = x_at + (j + lane % 8 + matrix % 2 * 8) * 16 + matrix / 2 * LOW;
#pragma unroll
                for (int y = 0; y < X_ROWS; ++y) {
                    unsigned b[3][4];
#pragma unroll
                    for (int kx = 0; kx < 3; ++kx) load_transposed(b[kx], from + (y * X_ROW + kx) * 16);
                    float products[ROWS * 3][4];  // of row r of gq at tap (y - r, kx), in the fp32 class
#pragma unroll
                    for (int product = 0; product < 3; ++product) {
#pragma unroll
                        for (int i = 0; i < ROWS * 3; ++i) {
                            const int r = i / 3, kx = i % 3, ky = y - r, half_of_x = product == 1 ? 2 : 0;
                            if (ky < 0 || ky > 2) continue;
                            const unsigned (&q)[4] = product == 0 ? low[r] : high[r];
                            const unsigned x0 = b[kx][half_of_x], x1 = b[kx][half_of_x + 1];
                            float (&alike)[4] = product == 1 ? of_low[ky * 3 + kx] : sum[ky * 3 + kx];
                            if (SPLIT == 1)
                                multiply(alike, q, x0, x1);
                            else if (product == 0)
                                multiply_first(products[i], q, x0, x1);
                            else
                                multiply(products[i], q, x0, x1);
                        }
                    }
#pragma unroll
                    for (int i = 0; i < ROWS * 3; ++i) {
                        const int ky = y - i / 3;
                        if (SPLIT == 3 && ky >= 0 && ky <= 2) add(sum[ky * 3 + i % 3], products[i]);
                    }
                }
            }
            // v * scale may owe x's lower halves up to 2^(one + gx_one + 25). Where this counts: what they add to a sum
            // of gq * v, in what the weights count in, beside the sums of gq.
            if (SPLIT == 1 && one + packed->gx_one > -27) {
                const auto convolved = [&](int tap, unsigned w, int i) {
                    const float2 f = __half22float2(*reinterpret_cast<const __half2*>(&w));
                    sum[TAPS][2 * i + 1] += of_low[tap][2 * i] * f.x + of_low[tap][2 * i + 1] * f.y;
                };
#pragma unroll
                for (int step = 0; step < 4; ++step) {
                    const uint4 w = packed->conv[step][half][0][lane];
                    const int a = step < 3 ? step : 6, b = step < 3 ? step + 3 : 7;
                    convolved(a, w.x, 0);
                    convolved(b, w.y, 0);
                    convolved(a, w.z, 1);
                    convolved(b, w.w, 1);
                }
                const uint4 w = packed->conv_last[0][lane];
                convolved(8, half ? w.z : w.x, 0);
                convolved(8, half ? w.w : w.y, 1);
#pragma unroll
                for (int i = 1; i < 4; i += 2) {
                    sum[TAPS][i] += __shfl_xor_sync(ALL_LANES, sum[TAPS][i], 1);
                    sum[TAPS][i] += __shfl_xor_sync(ALL_LANES, sum[TAPS][i], 2);
                }
            }
            if (SPLIT == 1) {
#pragma unroll
                for (int i = 0; i < TAPS; ++i) add(sum[i], of_low[i]);
            }
            __syncthreads();  // x's halves have been used
            float* to = reinterpret_cast<float*>(shared.x) + (part * FRAGMENTS + half * FRAGMENTS / 2) * WARP + lane;
#pragma unroll
            for (int i = 0; i < FRAGMENTS / 2; ++i) to[i * WARP] = sum[i / 4][i % 4];
            __syncthreads();  // every part's sums are there
            const float* from = reinterpret_cast<const float*>(shared.x) + threadIdx.x;
            const float back = power_of_two(q_one), x_back = power_of_two(one);
#pragma unroll
            for (int i = 0; i < MY_SUMS; ++i) {
                float v = 0.0f;
#pragma unroll
                for (int p = 0; p < PARTS; ++p) v += from[p * FRAGMENTS * WARP + i * THREADS];
                const bool of_x = (warp + i * WARPS) % (FRAGMENTS / 2) < TAPS * 4 || warp % 2;
                total[i] += v * back * (of_x ? x_back : 1.0f);
            }
        } else {
#pragma unroll 1
            for (int i = 0; i < MY_SUMS; ++i) {
                const int fragment = warp + i * WARPS, j = fragment % (FRAGMENTS / 2);
                const int o = fragment / (FRAGMENTS / 2) * 16 + g + j % 4 / 2 * 8, c = 2 * t + j % 2;
                const float* from = x + n * image + ((size_t)c * s.H + y0 + j / 12) * s.W + j / 4 % 3;
                double v = 0.0;
                for (int p = 0; p < ROWS * s.OW; ++p) {
                    const int r = p / s.OW, at = p % s.OW;
                    const float pixel = j < TAPS * 4 ? from[(size_t)r * s.W + at] : 1.0f - j % 2;
                    v += (double)gy_floats[o * GY_CHANNEL + r * X_ROW + at] * pixel;
                }
#pragma unroll
                for (int k = 0; k < MY_SUMS; ++k) total[k] += i == k ? (float)v : 0.0f;
                if (SPLIT == 1) reinterpret_cast<float*>(shared.x)[fragment * WARP + lane] = v;
            }
            if (SPLIT == 1 && !fits) {  // v knew the weights' lower halves: what they add to a sum of gq * v
                __syncthreads();  // all sums are there
#pragma unroll 1
                for (int i = 0; i < MY_SUMS; ++i) {
                    const int fragment = warp + i * WARPS, j = fragment % (FRAGMENTS / 2);
                    if (j < TAPS * 4 || j % 2 == 0 || t > 0) continue;
                    const int second = j % 4 / 2, o = fragment / (FRAGMENTS / 2) * 16 + g + second * 8;
                    const float* from = reinterpret_cast<const float*>(shared.x) + lane;
                    const float unit = power_of_two(-packed->conv_one[o]);
                    float low = 0.0f;
                    for (int k = 0; k < IN * TAPS; ++k) {
                        const int c = k / TAPS, at = fragment - j + k % TAPS * 4 + second * 2 + c % 2;
                        const float w = weight[o * IN * TAPS + k] * unit;
                        low += from[at * WARP + c / 2] * (w - __half2float(__float2half_rn(w)));
                    }
#pragma unroll
                    for (int k = 0; k < MY_SUMS; ++k) total[k] -= i == k ? low : 0.0f;
                }
            }
        }
        __syncthreads();  // nobody needs x, or what took its place
        start_x(n + teams);

        float sum[X_ROWS][2][4];  // rows of gx at pixels 16 i + g (and + 8, last two), channels 2 t (and + 1)
        const bool has_gx = gx != nullptr && warp * WARP < s.W;
        if (has_gx) {
            if (q_fits) {
                // matrices: 8 pixels of 8 channels, 8 pixels more, and both of the next 8 channels
                const unsigned at = q_at + (2 + warp * WARP + lane % 8 + matrix % 2 * 8 + matrix / 2 * Q_PLANE) * 16;
#pragma unroll
                for (int k = 0; k < 6; ++k) {
                    const int kx = k / 2;
                    const unsigned from = at + (k % 2 * 2 * Q_PLANE - kx) * 16;
                    unsigned high[ROWS][2][4], low[ROWS][2][4];
#pragma unroll
                    for (int i = 0; i < ROWS * 2; ++i) {
                        const unsigned pixel = from + (i / 2 * Q_ROW + i % 2 * 16) * 16;
                        load_matrices(high[i / 2][i % 2], pixel);
                        if (SPLIT == 3) load_matrices(low[i / 2][i % 2], pixel + Q_LOW * 16);
                    }
#pragma unroll
                    for (int ky = 0; ky < 3; ++ky) {
                        const uint4 w = packed->gx[kx][k % 2][ky][lane];
                        float part[ROWS * 2][4];
                        if (SPLIT == 3) {
#pragma unroll
                            for (int i = 0; i < ROWS * 2; ++i) multiply_first(part[i], high[i / 2][i % 2], w.z, w.w);
#pragma unroll
                            for (int i = 0; i < ROWS * 2; ++i) multiply(part[i], low[i / 2][i % 2], w.x, w.y);
                        }
#pragma unroll
                        for (int i = 0; i < ROWS * 2; ++i) {
                            finish_product(sum[i / 2 + ky][i % 2], part[i], high[i / 2][i % 2], w.x, w.y,
                                           k == 0 && (i / 2 == 1 || ky == 0));
                        }
                    }
                }
                const float back = power_of_two(q_one), weight_back = power_of_two(packed->gx_one);
#pragma unroll
                for (int i = 0; i < X_ROWS * 8; ++i) sum[i / 8][i / 4 % 2][i % 4] *= back * weight_back;
            } else {
                float sums[X_ROWS * 8];
                gx_slowly(gy_floats, weight, scale, s.OW, sums);
#pragma unroll
                for (int i = 0; i < X_ROWS * 8; ++i) sum[i / 8][i / 4 % 2][i % 4] = sums[i];
            }
            // The last two rows are the next block's first two, or the image's last.
            if (strip + 1 == strips) {
                store_gx(gx + n * image + (size_t)(y0 + ROWS) * s.W, s, sum[2], sum[3]);
            } else {
#pragma unroll
                for (int i = 0; i < EDGES; ++i) {
                    const unsigned value = __float_as_uint(sum[ROWS + i / 8][i / 4 % 2][i % 4]);
                    const unsigned long long stamped = (unsigned long long)n << 32 | value;
                    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(
                                     edges + (size_t)(blockIdx.x * EDGES + i) * THREADS + threadIdx.x),
                                 "l"(stamped)
                                 : "memory");
                }
            }
        }
        __syncthreads();  // nobody needs gq
        start_gy(n + teams);
        if (n + teams < s.N) finish_x();
        // the block before's edges are awaited
        if (has_gx) {
            if (strip > 0) {
                unsigned long long v[EDGES];
                bool waiting;
                do {
                    waiting = false;
#pragma unroll
                    for (int i = 0; i < EDGES; ++i) {
                        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                                     : "=l"(v[i])
                                     : "l"(edges + (size_t)((blockIdx.x - 1) * EDGES + i) * THREADS + threadIdx.x)
                                     : "memory");
                        waiting = waiting || (int)(v[i] >> 32) != n;
                    }
                } while (__any_sync(ALL_LANES, waiting));
#pragma unroll
                for (int i = 0; i < EDGES; ++i) sum[i / 8][i / 4 % 2][i % 4] += __uint_as_float((unsigned)v[i]);
            }
            store_gx(gx + n * image + (size_t)y0 * s.W, s, sum[0], sum[1]);
        }
        __syncthreads();  // the next image's halves are complete
    }

    float* to = sums + (size_t)blockIdx.x * OUT * SUMS;
#pragma unroll
    for (int i = 0; i < MY_SUMS; ++i) {
        const int fragment = warp + i * WARPS, j = fragment % (FRAGMENTS / 2);
        const int o = fragment / (FRAGMENTS / 2) * 16 + g + j % 4 / 2 * 8, c = 2 * t + j % 2;
        if (j < TAPS * 4)
            to[o * SUMS + c * TAPS + j / 4] = total[i];
        else if (c == 0)
            to[o * SUMS + OF_Q] = total[i];
        else if (c == 1)
            to[o * SUMS + OF_LOW] = total[i];
    }
    if (lane % WARPS == 0) {
        to += (warp * MINE + lane / WARPS) * SUMS;
        to[OF_GY] = of_gy;
        to[OF_GY_SH] = of_gy_sh;
    }
#endif
}
