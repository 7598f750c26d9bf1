// Statistics of the convolution, and with WINDOWS the largest value of each window of 4 x 4, or the smallest where the
// signs of gamma and factor differ: (N, OC, OH / 4, tiles_x * 32), eight windows in the order 0 2 4 6 1 3 5 7. moments:
// (N, OC, parts), where a part is what one warp has of an image; moments_count() of them are written. A count of minus
// infinity tells of an uneven image.
template <int SPLIT, int MT, int R, int WARPS, int BLOCKS, bool WINDOWS>
__global__ void __launch_bounds__(WARPS* WARP, BLOCKS)
    statistics_kernel(const float* x, const float* weight, const float* bias, const float* gamma, const float* factor,
#if !BACKWARD
                      float* windows, Moments* moments, int parts, Shape s) {
#elif CONV_GROUPNORM_LOGSUMEXP && BACKWARD
                      float* windows, float* largest, Moments* moments, int parts, Shape s) {
#else
                      float* windows, Moments* moments, float* largest, int parts, Shape s) {
#endif
#ifdef TENSOR_CORES
    using OfTile = Tile<SPLIT, R, WARPS>;
    constexpr int SHARES = CHUNK / 16 / MT, MAKERS = WARPS / SHARES, OCTETS = MT == 1 ? 2 : 1;
    constexpr int LOW = OfTile::PIXELS * 16;  // bytes from halves to what they leave
    extern __shared__ uint4 shared[];
#if CONV_GROUPNORM_LOGSUMEXP
    __shared__ int lowest;
#endif
    __shared__ float unscale[CHUNK], bias_scaled[CHUNK], shifts[WARPS][MT * 16];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const int local = warp % SHARES * (MT * 16), maker = warp / SHARES, first = blockIdx.y * CHUNK;
    OfTile tile(shared, x, s);
    Weights<SPLIT, MT> w;
#if CONV_GROUPNORM_LOGSUMEXP
    w.load(weight, bias, gamma, factor, s, first, local, tile.raw, unscale, bias_scaled, &lowest);
#else
    w.load(weight, bias, gamma, factor, s, first, local, tile.raw, unscale, bias_scaled);
#endif
    tile.clear();
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(shared);
    const uint32_t pair = at + (lane / 16 * COLUMNS + lane % 8 + lane / 8 % 2) * 16;
    const uint32_t single = at + (lane / 8 * COLUMNS + lane % 8 + 2) * 16;
    const int PH = s.OH / 4, windows_a_row = s.tiles_x * (WIDE / 4);
    const int mine = first + local + g + 8 * (t % 2);  // the channel of the lane's windows; with m, 16 * m further on
#if CONV_GROUPNORM_LOGSUMEXP && BACKWARD
    float steepest = 0.0f;  // at least the largest weight
    for (int c = 0; c < CHUNK; ++c) steepest = fmaxf(steepest, fabsf(unscale[c]) * 1024);
#endif

    float from[MT][4], sum[MT][2], squares[MT][2];  // `from` as the accumulators lie
    int count = 0, exponent = 0;
    const int begin = first_tile(s, blockIdx.x), end = first_tile(s, blockIdx.x + 1);
    if (begin < end) tile.start(begin);
    for (int i = begin; i < end; ++i) {
#if CONV_GROUPNORM_LOGSUMEXP
        const bool fresh = tile.ready(i + 1 < end, lowest);
#else
        const bool fresh = tile.ready(i + 1 < end);
#endif
#if BACKWARD && CONV_GROUPNORM_MAXPOOL
        if (threadIdx.x == 0 && blockIdx.y == 0) largest[i] = tile.largest, largest[s.tiles + i] = tile.least;
#endif
        const float up = power_of_two(tile.exponent), down = power_of_two(-tile.exponent);
#if CONV_GROUPNORM_LOGSUMEXP && BACKWARD
        const bool rounded = tile.largest * steepest > 2.0f;  // values may be large, also beside what they deviate
        if (threadIdx.x == 0) {
            const bool beyond = tile.largest < INFINITY && exponent_for(tile.largest) < lowest;
            largest[i] = beyond ? -tile.largest : tile.largest;
        }
#endif
        if (fresh) {
            // Sums are taken about a pixel's value: a sum of squares about 0 has no correct digit where the mean is
            // large. The first one's, or where it lies far off the fourth to the eighth, the seventh's: an outlier
            // of x reaches three.
            Pixels b;
            b.load(pair, single);
            const float zero[MT][4] = {};
            float acc[1][MT][4];
            product<MT, 1, true>(w.high, b, zero, acc);
#pragma unroll
            for (int m = 0; m < MT; ++m) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int c = m * 16 + h * 8 + g;
                    const float b = bias_scaled[local + c] * up;
                    const float first = __shfl_sync(ALL_LANES, acc[0][m][2 * h], lane & ~3);
                    const float other = __shfl_sync(ALL_LANES, acc[0][m][2 * h], lane | 3);
                    float spread = fmaxf(t > 1 ? fabsf(acc[0][m][2 * h] - other) : 0.0f,
                                         t > 0 ? fabsf(acc[0][m][2 * h + 1] - other) : 0.0f);
                    spread = fmaxf(spread, __shfl_xor_sync(ALL_LANES, spread, 1));
                    spread = fmaxf(spread, __shfl_xor_sync(ALL_LANES, spread, 2));
                    const float shift = b + (fabsf(first - other) > 8.0f * spread ? other : first);
                    if (t == 0) shifts[warp][c] = shift * down;
                    from[m][2 * h] = from[m][2 * h + 1] = b - shift;
                    sum[m][h] = squares[m][h] = 0.0f;
                }
            }
            __syncwarp();
            count = 0;
        } else if (tile.exponent != exponent) {
            const float f = exp2f(tile.exponent - exponent);
#pragma unroll
            for (int m = 0; m < MT; ++m) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    from[m][2 * h] *= f;
                    from[m][2 * h + 1] *= f;
                    sum[m][h] *= f;
                    squares[m][h] = squares[m][h] * f * f;
                }
            }
        }
        exponent = tile.exponent;

        float* const to =
            windows + (((int64_t)tile.n * s.OC + mine) * PH + tile.y0 / 4) * windows_a_row + tile.x0 / 4 + t / 2 * 4;
        for (int job = maker; job < R; job += MAKERS) {  // 32 pixels of 4 rows
            const int strip = job / 4, column = (job + strip) % 4 * 32;
            const int rows = min(4, s.OH - tile.y0 - strip * 4), columns = min(32, s.OW - tile.x0 - column);
            if (rows <= 0 || columns <= 0) continue;
            count += rows * columns;
            float best[4][MT];
            const uint32_t offset = (strip * 4 * COLUMNS + column) * 16;
            const auto keep = [&](int j, const float (&of_octet)[MT]) {
#pragma unroll
                for (int m = 0; m < MT; ++m) {
#pragma unroll
                    for (int k = 0; k < 4; ++k) {
                        if (j == k) best[k][m] = of_octet[m];
                    }
                }
            };
            if (rows == 4 && columns == 32) {
#pragma unroll OCTETS
                for (int j = 0; j < 4; ++j) {
                    float acc[4][MT][4], of_octet[MT];
#if CONV_GROUPNORM_MAXPOOL || !BACKWARD
                    convolve<SPLIT, MT, LOW>(w, pair + offset + j * 128, single + offset + j * 128, from, acc);
#else
                    convolve<SPLIT, MT, LOW>(w, pair + offset + j * 128, single + offset + j * 128, from, acc, rounded);
#endif
                    add<MT, WINDOWS>(acc, sum, squares, of_octet);
                    if constexpr (WINDOWS) keep(j, of_octet);
                }
            } else {
                if constexpr (WINDOWS) {
                    const float none[MT] = {};
                    for (int j = 0; j < 4; ++j) keep(j, none);
                }
#pragma unroll 1
                for (int j = 0; j < 4 && j * 8 < columns; ++j) {
                    float acc[4][MT][4], of_octet[MT];
#if CONV_GROUPNORM_MAXPOOL || !BACKWARD
                    convolve<SPLIT, MT, LOW>(w, pair + offset + j * 128, single + offset + j * 128, from, acc);
#else
                    convolve<SPLIT, MT, LOW>(w, pair + offset + j * 128, single + offset + j * 128, from, acc, rounded);
#endif
                    if (rows < 4 || columns < j * 8 + 8) {
#pragma unroll
                        for (int r = 0; r < 4; ++r) {
#pragma unroll
                            for (int m = 0; m < MT; ++m) {
#pragma unroll
                                for (int k = 0; k < 4; ++k) {
                                    if (r >= rows || j * 8 + 2 * t + k % 2 >= columns) acc[r][m][k] = 0.0f;
                                }
                            }
                        }
                    }
                    add<MT, WINDOWS>(acc, sum, squares, of_octet);
                    if constexpr (WINDOWS) keep(j, of_octet);
                }
            }
            if constexpr (WINDOWS) {
                if (rows == 4) {
#pragma unroll
                    for (int m = 0; m < MT; ++m) {
                        if (mine + m * 16 >= s.OC) continue;
                        const int c = m * 16 + g + 8 * (t % 2);
                        const float f = unscale[local + c] * down, o = shifts[warp][c] * unscale[local + c];
                        float* const there = to + ((int64_t)m * 16 * PH + strip) * windows_a_row + column / 4;
                        *reinterpret_cast<float4*>(there) = {fmaf(best[0][m], f, o), fmaf(best[1][m], f, o),
                                                             fmaf(best[2][m], f, o), fmaf(best[3][m], f, o)};
                    }
                }
            }
        }

        if (i + 1 < end && tile.next_n == tile.n) continue;
        const int slot = (blockIdx.x - block_of(s, tile.n * s.tiles_x * s.tiles_y)) * MAKERS + maker;
        const float part = 1.0f / fmaxf((float)count, 1.0f);
#pragma unroll
        for (int m = 0; m < MT; ++m) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float a = sum[m][h], b = squares[m][h];
#pragma unroll
                for (int o = 1; o < 4; o *= 2) {
                    a += __shfl_xor_sync(ALL_LANES, a, o);
                    b += __shfl_xor_sync(ALL_LANES, b, o);
                }
                const int c = m * 16 + h * 8 + g;
                if (t == 0 && first + local + c < s.OC) {
#if CONV_GROUPNORM_LOGSUMEXP
                    const float f = unscale[local + c] * down, off = a * part, known = tile.uneven ? -INFINITY : count;
                    moments[((int64_t)tile.n * s.OC + first + local + c) * parts + slot] = {
                        known, fmaf(off, f, shifts[warp][c] * unscale[local + c]), (b - a * off) * f * f};
#else
                    const float f = unscale[local + c] * down, off = a * part;
                    moments[((int64_t)tile.n * s.OC + first + local + c) * parts + slot] = {
                        (float)count, fmaf(off, f, shifts[warp][c] * unscale[local + c]), (b - a * off) * f * f};
#endif
                }
            }
        }
    }
#endif
}

// Moments a channel that statistics_kernel writes of image n.
__host__ __device__ inline int moments_count(const Shape& s, int n, int makers) {
    const int tiles = s.tiles_x * s.tiles_y;
    return (block_of(s, n * tiles + tiles - 1) - block_of(s, n * tiles) + 1) * makers;
}

// Sums of both over the block, for all its threads. All of them must call it.
template <int THREADS, typename Pair>
__device__ __forceinline__ Pair sums_of_block(Pair v) {
    __shared__ Pair of_warp[THREADS / WARP];
#pragma unroll
    for (int o = WARP / 2; o > 0; o /= 2) {
        v.x += __shfl_xor_sync(ALL_LANES, v.x, o);
        v.y += __shfl_xor_sync(ALL_LANES, v.y, o);
    }
    __syncthreads();  // nobody reads the last call's any more
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = v;
    __syncthreads();  // all warps have written
    v = of_warp[0];
#pragma unroll
    for (int w = 1; w < THREADS / WARP; ++w) v = {v.x + of_warp[w].x, v.y + of_warp[w].y};
    return v;
}

#if CONV_GROUPNORM_LOGSUMEXP && BACKWARD
using Wide = double;
using Pair = double2;
#else
using Wide = float;
using Pair = float2;
#endif

// Mean and 1 / sqrt(variance + eps) of a group: `channels` times `count` moments, those of a channel `parts` after
// those of the one before. Always in the same order. All threads of a block must call it.
template <int THREADS>
__device__ __forceinline__ float2 statistics_of_group(const Moments* moments, int channels, int count, int parts,
                                                      float eps) {
    const float about = moments->mean;  // of some pixels: differences to it are small
    Pair v = {0, 0};
    for (int i = threadIdx.x; i < channels * count; i += THREADS) {
        const Moments m = moments[(int64_t)(i / count) * parts + i % count];
        v.x += m.count;
        v.y += (Wide)m.count * (m.mean - about);
    }
    v = sums_of_block<THREADS>(v);
    const Wide all = v.x, mean = about + v.y / all;
#if CONV_GROUPNORM_LOGSUMEXP
    if (all < 0) return {0.0f, -1.0f};  // of an uneven image: nothing is known
#endif
    v = {0, 0};
    for (int i = threadIdx.x; i < channels * count; i += THREADS) {
        const Moments m = moments[(int64_t)(i / count) * parts + i % count];
        const Wide d = m.mean - mean;
        v.x += m.squares + m.count * d * d;
    }
    v = sums_of_block<THREADS>(v);
    const Wide variance = v.x < 0 ? 0 : v.x / all;  // fmax would hide a NaN
    return {(float)mean, (float)(1 / sqrt(variance + eps))};
}
