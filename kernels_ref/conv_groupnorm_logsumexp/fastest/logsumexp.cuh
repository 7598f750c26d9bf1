constexpr float LOG2E = 1.4426950408889634f;

#ifdef TENSOR_CORES
__device__ __forceinline__ float power(float v) {  // 2^v
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}
__device__ __forceinline__ float reciprocal(float v) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}
__device__ __forceinline__ float lesser(float a, float b) {  // NaN if one is, other than fminf
    float r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

// 1 / d[i] for four numbers of 1 to 2^31, with one reciprocal: special functions are scarcer than products.
__device__ __forceinline__ void reciprocals(const float (&d)[4], float (&r)[4]) {
    const float d01 = d[0] * d[1], d23 = d[2] * d[3], all = reciprocal(d01 * d23), r01 = all * d23, r23 = all * d01;
    r[0] = r01 * d[1];
    r[1] = r01 * d[0];
    r[2] = r23 * d[3];
    r[3] = r23 * d[2];
}

// What a channel's sum of products needs on its way: v = sum * unit + offset, in units of ln 2, and u = sum * slope +
// intercept, twice the normalised value in these units.
struct alignas(16) Line {
    float slope, intercept, unit, offset;
};

// The sums of exponentials of a warp's channels over 4 rows of 8 pixels: those of z = v + hardswish(tanh(u / 2)), or
// with SAFE of z - top. With r = 1 / (1 + exp(u)), tanh is 1 - 2r, and hardswish of it 2/3 - 5/3 r + 2/3 r^2; its first
// term is in Line::offset.
template <int MT, bool SAFE>
__device__ __forceinline__ void exponentials(const float (&acc)[4][MT][4], const Line* lines, float (&sum)[8],
                                             float (&top)[8]) {
#pragma unroll
    for (int k = 0; k < 8; ++k) sum[k] = 0.0f;
    if constexpr (SAFE) {
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            top[k] = -1e30f;
#pragma unroll
            for (int c = 0; c < 2 * MT; ++c) {
                const Line l = lines[c * 8];
                top[k] = fmaxf(top[k], fmaf(acc[k / 2][c / 2][c % 2 * 2 + k % 2], l.unit, l.offset));
            }
            for (int o = 4; o < WARP; o *= 2) top[k] = fmaxf(top[k], __shfl_xor_sync(ALL_LANES, top[k], o));
        }
    }
#pragma unroll
    for (int m = 0; m < MT; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const Line l = lines[m * 16 + h * 8];
#pragma unroll
            for (int four = 0; four < 8; four += 4) {
                float d[4], r[4];
#pragma unroll
                for (int k = 0; k < 4; ++k) {  // beyond 30 tanh is 1, and the product of four still a float
                    const float u = fmaf(acc[(four + k) / 2][m][2 * h + k % 2], l.slope, l.intercept);
                    d[k] = 1.0f + power(lesser(u, 30.0f));
                }
                reciprocals(d, r);
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    float z = fmaf(acc[(four + k) / 2][m][2 * h + k % 2], l.unit, l.offset);
                    if constexpr (SAFE) z -= top[four + k];
                    sum[four + k] += power(fmaf(r[k], fmaf(r[k], LOG2E * 2 / 3, -LOG2E * 5 / 3), z));
                }
            }
        }
    }
}
#endif

// The convolution once more, and all that follows it: y (N, OH, OW), the logsumexp over up to CHUNK channels. A pixel's
// channels lie in 8 lanes of SHARES warps; each share leaves its sum in shared memory. Floats have room for the sums
// where the values of all channels are less than 69 from the image's largest mean; where a tile shows that this is not
// so, or where the deviations are so large that it cannot be, the largest value is found and taken off first.
template <int SPLIT, int MT, int R, int WARPS, int BLOCKS>
__global__ void __launch_bounds__(WARPS* WARP, BLOCKS)
    logsumexp_kernel(const float* x, const float* weight, const float* bias, const float* gamma, const float* beta,
                     const float2* statistics, float* y, int channels_a_group, Shape s) {
#ifdef TENSOR_CORES
    using OfTile = Tile<SPLIT, R, WARPS>;
    constexpr int SHARES = CHUNK / 16 / MT, MAKERS = WARPS / SHARES, PITCH = WIDE + 8;  // pitch: no bank conflicts
    constexpr int LOW = OfTile::PIXELS * 16;  // bytes from halves to what they leave
    extern __shared__ uint4 shared[];
    // Of a pixel's exponentials, for each share of the channels: the sum, or its logarithm.
    float (*shares)[R][PITCH] =
        reinterpret_cast<float (*)[R][PITCH]>(reinterpret_cast<char*>(shared) + tile_bytes(SPLIT, R));
    __shared__ int lowest;
    __shared__ float unscale[CHUNK], bias_scaled[CHUNK];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const int share = warp % SHARES, maker = warp / SHARES, groups = s.OC / channels_a_group;
    OfTile tile(shared, x, s);
    Weights<SPLIT, MT> w;
    w.load(weight, bias, nullptr, nullptr, s, 0, share * (MT * 16), tile.raw, unscale, bias_scaled, &lowest);
    tile.clear();
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(shared);
    const uint32_t pair = at + (lane / 16 * COLUMNS + lane % 8 + lane / 8 % 2) * 16;
    const uint32_t single = at + (lane / 8 * COLUMNS + lane % 8 + 2) * 16;

    __shared__ Line lines[CHUNK];
    const Line* const mine = lines + share * (MT * 16) + g;
    float shift = 0.0f;  // taken off every value: the largest mean of the image's groups
    int exponent = 0;  // of the scale that `lines` take back
    bool wide = false;  // the image's deviations are large
    const int begin = first_tile(s, blockIdx.x), end = first_tile(s, blockIdx.x + 1);
    if (begin < end) tile.start(begin);
    for (int i = begin; i < end; ++i) {
        const bool fresh = tile.ready(i + 1 < end, lowest);
        if (fresh) {
            float least = INFINITY;
            shift = -INFINITY;
            for (int k = 0; k < groups; ++k) {
                const float2 of_group = statistics[tile.n * groups + k];
                shift = fmaxf(shift, of_group.x);
                least = fminf(least, of_group.y);
            }
            wide = least < 1.0f / 12;
        }
        if (fresh || tile.exponent != exponent) {
            exponent = tile.exponent;
            if (threadIdx.x < CHUNK) {
                const int c = threadIdx.x;
                Line l = {0.0f, 0.0f, 0.0f, -INFINITY};  // a channel that there is not adds nothing
                if (c < s.OC) {
                    const float2 of_group = statistics[tile.n * groups + c / channels_a_group];
                    const float a = of_group.y * gamma[c] * (2 * LOG2E), one = unscale[c] * power_of_two(-exponent);
                    l = {one * a, fmaf(bias[c] - of_group.x, a, beta[c] * (2 * LOG2E)), one * LOG2E,
                         (bias[c] - shift + 2.0f / 3) * LOG2E};
                }
                lines[c] = l;
            }
            __syncthreads();  // all lines are there
        }
        if (tile.uneven) {
            tile_in_double(x, {weight, bias, gamma, beta, statistics, channels_a_group}, y, tile.n, tile.y0, tile.x0, R,
                           s);
            continue;
        }
        for (bool safe = wide;; safe = true) {
            for (int job = maker; job < R; job += MAKERS) {  // 32 pixels of 4 rows
                const int row = job / 4 * 4, column = (job + job / 4) % 4 * 32;
                if (tile.y0 + row >= s.OH) break;
                const uint32_t offset = (row * COLUMNS + column) * 16;
#pragma unroll 1
                for (int j = 0; j < 4; ++j) {
                    if (tile.x0 + column + j * 8 >= s.OW) break;
                    const float zero[MT][4] = {};
                    float acc[4][MT][4], sum[8], top[8];
                    convolve<SPLIT, MT, LOW>(w, pair + offset + j * 128, single + offset + j * 128, zero, acc);
                    if (safe)
                        exponentials<MT, true>(acc, mine, sum, top);
                    else
                        exponentials<MT, false>(acc, mine, sum, top);
                    // A pixel's channels lie in 8 lanes. Each step halves the pixels that a lane has.
#pragma unroll
                    for (int half = 4, o = 16; half > 0; half /= 2, o /= 2) {
                        const bool upper = lane & o;
#pragma unroll
                        for (int k = 0; k < half; ++k) {
                            const float own = upper ? sum[k + half] : sum[k], other = upper ? sum[k] : sum[k + half];
                            sum[k] = own + __shfl_xor_sync(ALL_LANES, other, o);
                            if (safe) top[k] = upper ? top[k + half] : top[k];
                        }
                    }
                    if (safe) sum[0] = top[0] + log2f(sum[0]);
                    shares[share][row + lane / 8][column + j * 8 + 2 * t + lane / 4 % 2] = sum[0];
                }
            }
            __syncthreads();  // all shares are there
            bool bad = false;
            const int rows = min(R, s.OH - tile.y0), columns = min(WIDE, s.OW - tile.x0);
            float* const to = y + ((int64_t)tile.n * s.OH + tile.y0) * s.OW + tile.x0;
            for (int row = warp; row < rows; row += WARPS) {
                for (int column = lane; column < columns; column += WARP) {
                    float sum = 0.0f, top = 0.0f;
                    if (safe) {
                        top = shares[0][row][column];
                        for (int k = 1; k < SHARES; ++k) top = fmaxf(top, shares[k][row][column]);
                        for (int k = 0; k < SHARES; ++k) sum += power(shares[k][row][column] - top);
                        top *= 1.0f / LOG2E;
                    } else {
                        for (int k = 0; k < SHARES; ++k) sum += shares[k][row][column];
                        bad = bad || sum <= 1e-30f || sum >= 1e36f;
                    }
                    to[row * s.OW + column] = shift + top + logf(sum);
                }
            }
            // Also: nobody reads the shares any more.
            if (!__syncthreads_or(bad) || safe) break;
        }
    }
#endif
}
