#ifdef TENSOR_CORES

// Which pixels of a window of 4 x 4 have the largest value of one channel, or, where EXACT, come closer to it than
// `room`: bit row times 4 plus column of each. A lane has two columns of the window, its neighbour the others; `half`
// is 0 or 1 of the channels in acc.
__device__ __forceinline__ unsigned largest_of_window(const float (&acc)[4][4], int half, float room) {
    float best = acc[0][2 * half];
#pragma unroll
    for (int i = 1; i < 8; ++i) best = fmaxf(best, acc[i / 2][2 * half + i % 2]);
    best = fmaxf(best, __shfl_xor_sync(ALL_LANES, best, 1));
    const float limit = EXACT ? best - room : best;
    unsigned found = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        if (acc[i / 2][2 * half + i % 2] >= limit) found |= 1u << (i / 2 * 4 + i % 2);
    }
    found <<= threadIdx.x % 2 * 2;
    return found | __shfl_xor_sync(ALL_LANES, found, 1);
}

// The place of the largest v, row times 4 plus column, in the window at row y, column x of an image, by sums in double:
// a warp's lanes share the terms. sign: -1 where the smallest is asked for.
__device__ __forceinline__ int exact_place(const float* image, const float* weight, float sign, int y, int x,
                                           const Shape& s) {
    constexpr int SHARE = (IN * TAPS + WARP - 1) / WARP;
    float w[SHARE];
    int64_t offset[SHARE];
#pragma unroll
    for (int i = 0; i < SHARE; ++i) {
        const int k = threadIdx.x % WARP + i * WARP;
        const bool in = k < s.C * TAPS;
        w[i] = in ? weight[k] : 0.0f;
        offset[i] = in ? ((int64_t)(k / TAPS) * s.H + k % TAPS / 3 + y) * s.W + k % 3 + x : 0;
    }
    double best = -INFINITY;
    int place = 0;
#pragma unroll 1
    for (int row = 0; row < 4; ++row) {
        double sum[4] = {};
#pragma unroll
        for (int i = 0; i < SHARE; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                if (w[i] != 0.0f) sum[j] += (double)w[i] * image[offset[i] + j];
            }
            offset[i] += s.W;
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            for (int o = WARP / 2; o > 0; o /= 2) sum[j] += __shfl_xor_sync(ALL_LANES, sum[j], o);
            if (sum[j] * sign > best) best = sum[j] * sign, place = row * 4 + j;
        }
    }
    return place;
}

// gv of a strip: v for 16 channels and 32 columns at a time, from it gv as a product and a sum, into shared memory.
__device__ __forceinline__ void make_gv(Strip& strip, const float* image, const float* weight, const float* gm, int n,
                                        int y0, int across, int rows, int columns, const Sweep& sweep, const Shape& s) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const int m = warp % (CHUNK / 16), PH = s.OH / 4, c = m * 16 + 2 * g;  // the lane's first channel
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(strip.x);
    const uint32_t pair = at + (lane / 16 * COLUMNS + lane % 8 + lane / 8 % 2) * 16;
    const uint32_t single = at + (lane / 8 * COLUMNS + lane % 8 + 2) * 16;
    uint32_t w[5][4], w_low[5][4];
#pragma unroll
    for (int k = 0; k < 5; ++k) {
        const uint4 v = strip.weight[0][m][k][lane];
        w[k][0] = v.x, w[k][1] = v.y, w[k][2] = v.z, w[k][3] = v.w;
        if constexpr (SPLIT == 3) {
            const uint4 l = strip.weight[HALVES - 1][m][k][lane];
            w_low[k][0] = l.x, w_low[k][1] = l.y, w_low[k][2] = l.z, w_low[k][3] = l.w;
        }
    }
    const float4 of[2] = {strip.of_channel[c], strip.of_channel[c + 1]};
    char* const to = reinterpret_cast<char*>(strip.gv) + ((m * 2 + g / 4) * G_PLANE + 2 + 2 * t) * 16 + g % 4 * 4;
    for (int j = warp / (CHUNK / 16); j < 4; j += G_WARPS / (CHUNK / 16)) {
        float of_window[2][4] = {};  // the lane's windows in the four octets
        if (y0 / 4 < PH) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                if (c + h >= s.OC) continue;
                const int64_t row = (((int64_t)n * s.OC + c + h) * PH + y0 / 4) * sweep.across + across;
                const float4 v = *reinterpret_cast<const float4*>(gm + row * STRIP_WINDOWS + j * 8 + t / 2 * 4);
                of_window[h][0] = v.x * of[h].z;
                of_window[h][1] = v.y * of[h].z;
                of_window[h][2] = v.z * of[h].z;
                of_window[h][3] = v.w * of[h].z;
            }
        }
#pragma unroll G_OCTETS
        for (int octet = 0; octet < 4; ++octet) {
            const int column = j * 32 + octet * 8;
            float acc[4][4];
            Patch high;
            high.load(pair + column * 16, single + column * 16);
            if constexpr (SPLIT == 3) {  // small products first: tensor cores do not round a sum but cut it off
                Patch low;
                low.load(pair + X_LOW + column * 16, single + X_LOW + column * 16);
                product<true>(w_low, high, acc);
                product<false>(w, low, acc);
                product<false>(w, high, acc);
            } else {
                product<true>(w, high, acc);
            }
            float extra[2];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                if (octet == k) extra[0] = of_window[0][k], extra[1] = of_window[1][k];
            }
            int place[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const unsigned found = largest_of_window(acc, h, of[h].w);
                place[h] = __ffs(found) - 1;  // of equal ones the first
                if constexpr (EXACT) {  // not where the first two are as large: a plain surface has equal pixels
                    const bool plain = found % 4 == 3 && acc[0][2 * h] == acc[0][2 * h + 1];
                    const bool doubtful = (found & (found - 1)) > 0 && !plain && fabsf(extra[h]) > 0.0f;
                    unsigned pending = __ballot_sync(ALL_LANES, doubtful && t % 2 == 0);
                    for (; pending > 0; pending &= pending - 1) {
                        const int who = __ffs(pending) - 1, channel = m * 16 + who / 4 * 2 + h;
                        const int exact =
                            exact_place(image, weight + channel * s.C * TAPS, strip.up[channel] < 0.0f ? -1.0f : 1.0f,
                                        y0, across * STEP + column + who % 4 / 2 * 4, s);
                        if (lane / 2 == who / 2) place[h] = exact;
                    }
                }
                place[h] -= t % 2 * 2;
            }
            const auto put = [&](int r, int k, bool in) {
                float v[2];
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    v[h] = fmaf(acc[r][2 * h + k], of[h].x, of[h].y);
                    if (place[h] == r * 4 + k) v[h] += extra[h];
                    if (!in) v[h] = 0.0f;
                }
                const uint32_t both = halves(v[0], v[1]);
                char* const there = to + (r * COLUMNS + column + k) * 16;
                *reinterpret_cast<uint32_t*>(there) = both;
                if constexpr (BOTH) *reinterpret_cast<uint32_t*>(there + G_LOW) = rest(both, v[0], v[1]);
            };
            if (rows == 4 && column + 8 <= columns) {
#pragma unroll
                for (int i = 0; i < 8; ++i) put(i / 2, i % 2, true);
            } else {
#pragma unroll
                for (int i = 0; i < 8; ++i) put(i / 2, i % 2, i / 2 < rows && column + 2 * t + i % 2 < columns);
            }
        }
    }
}

// Adds what a strip's gv gives to 6 rows of gx, for a warp's 16 columns. Tensor cores cut their sums off, floats are
// rounded: so floats take over after a few products.
__device__ __forceinline__ void add_gx(const Strip& strip, float (&sum)[6][4]) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    // 16 pixels of 8 channels, then of 8 more
    const uint32_t base =
        (uint32_t)__cvta_generic_to_shared(strip.gv) + (lane / 16 * G_PLANE + warp * 16 + 2 + lane % 16) * 16;
#pragma unroll 1
    for (int m = 0; m < CHUNK / 16; ++m) {
#pragma unroll
        for (int kx = 0; kx < 3; ++kx) {
            uint32_t a[4][4], low[4][4];
            uint2 w[3], w_low[3];
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const uint32_t at = base + (m * 2 * G_PLANE + r * COLUMNS - kx) * 16;
                fragments(a[r], at);
                if constexpr (SPLIT == 3) fragments(low[r], at + G_LOW);
            }
#pragma unroll
            for (int ky = 0; ky < 3; ++ky) {
                w[ky] = strip.weight_of_x[0][ky * 3 + kx][m][lane];
                if constexpr (SPLIT == 3) w_low[ky] = strip.weight_of_x[HALVES - 1][ky * 3 + kx][m][lane];
            }
            if constexpr (SPLIT == 3) {
                float part[6][4];
#pragma unroll
                for (int i = 0; i < 36; ++i) {  // small products first
                    const int ky = i / 4 % 3, r = i % 4;
                    if (i >= 24)
                        mma16(part[r + ky], a[r], w[ky].x, w[ky].y);
                    else if (i >= 12)
                        mma16(part[r + ky], a[r], w_low[ky].x, w_low[ky].y);
                    else if (ky == 0 || r == 3)
                        mma16_first(part[r + ky], low[r], w[ky].x, w[ky].y);
                    else
                        mma16(part[r + ky], low[r], w[ky].x, w[ky].y);
                }
#pragma unroll
                for (int i = 0; i < 24; ++i) sum[i / 4][i % 4] += part[i / 4][i % 4];
            } else {
#pragma unroll
                for (int i = 0; i < 12; ++i) mma16(sum[i % 4 + i / 4], a[i % 4], w[i / 4].x, w[i / 4].y);
            }
        }
    }
}

// Adds a strip's products of gv and x to the weight's gradient, for a warp's 16 channels and every other 16 columns.
// Tensor cores cut small numbers off beside large ones: three products of 16 pixels are all they add up, but in TF32's
// class.
__device__ __forceinline__ void add_weight(const Strip& strip, int columns, float (&total)[TAPS][4]) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, m = warp % (CHUNK / 16);
    const int pixel = lane % 8 + lane / 16 * 8;
    // 8 pixels of 8 channels and of 8 more, then 8 pixels further on
    const uint32_t base =
        (uint32_t)__cvta_generic_to_shared(strip.gv) + ((m * 2 + lane / 8 % 2) * G_PLANE + 2 + pixel) * 16;
    const uint32_t x_base = (uint32_t)__cvta_generic_to_shared(strip.x) + (lane % 16) * 16 +
                            (W_SPLIT == 3 ? lane / 16 * X_LOW : lane / 16 * 16);
#pragma unroll 1
    for (int column = warp / (CHUNK / 16) * 16; column < columns; column += G_WARPS / (CHUNK / 16) * 16) {
        uint32_t a[4][4], low[4][4];
        float sum[TAPS][4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            transposed(a[r], base + (r * COLUMNS + column) * 16);
            if constexpr (W_SPLIT == 3) transposed(low[r], base + G_LOW + (r * COLUMNS + column) * 16);
        }
#pragma unroll
        for (int row = 0; row < 6; ++row) {  // of x
            uint32_t b[3][4];  // W_SPLIT 3: 16 pixels, and their lower halves; else 16 pixels, and those one column on
            if constexpr (W_SPLIT == 3) {
#pragma unroll
                for (int kx = 0; kx < 3; ++kx) transposed(b[kx], x_base + (row * COLUMNS + column + kx) * 16);
            } else {
                transposed(b[0], x_base + (row * COLUMNS + column) * 16);
                b[1][0] = b[0][2], b[1][1] = b[0][3];
                uint32_t both[4];
                transposed(both, x_base + (row * COLUMNS + column + 1) * 16);
                b[2][0] = both[2], b[2][1] = both[3];
            }
            float part[TAPS][4];
#pragma unroll
            for (int p = W_SPLIT == 3 ? 0 : 3; p < 4; ++p) {  // small products first
#pragma unroll
                for (int kx = 0; kx < 3; ++kx) {
#pragma unroll
                    for (int ky = 0; ky < 3; ++ky) {
                        const int r = row - ky, tap = ky * 3 + kx;
                        if (r < 0 || r > 3) continue;
                        if constexpr (W_SPLIT != 3) {
                            mma16(total[tap], a[r], b[kx][0], b[kx][1]);
                        } else if (p == 0) {
                            mma16_first(part[tap], low[r], b[kx][0], b[kx][1]);
                        } else if (p == 1) {
                            mma16(part[tap], a[r], b[kx][2], b[kx][3]);
                        } else if (p == 2) {
                            mma16(part[tap], a[r], b[kx][0], b[kx][1]);
                        } else {
#pragma unroll
                            for (int i = 0; i < 4; ++i) sum[tap][i] = r > 0 ? sum[tap][i] + part[tap][i] : part[tap][i];
                        }
                    }
                }
            }
        }
        if constexpr (W_SPLIT == 3) {
#pragma unroll
            for (int i = 0; i < 4 * TAPS; ++i) total[i / 4][i % 4] += sum[i / 4][i % 4];
        }
    }
}
#endif
