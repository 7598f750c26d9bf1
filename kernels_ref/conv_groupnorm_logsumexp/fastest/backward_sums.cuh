// First pass: x, y, gy -> parts (N, OC, tiles * SUM_MAKERS): sums of gu and of gu * xh in each tile of SUM_ROWS rows.
// CORRECT: only images of large values; factors (N, OH, OW): 1 / the sum of exp(z - y) over the channels. That is 1,
// but for the roundings of v and y, which are as large as a gradient where values are large; multiplied by gy, they
// cancel. Negative where y is to be marked. And first, of uneven images, the parts, which are then complete.
constexpr int SUM_ROWS = 8, SUM_WARPS = 8, SUM_MAKERS = SUM_WARPS / SHARES;
struct SumsShared {
    uint4 x[SPLIT == 3 ? 2 : 1][SUM_ROWS + 2][X_PITCH];
    float2 of_pixel[SUM_ROWS][WIDE];
    float2 shares[SHARES][SUM_ROWS][WIDE];  // sums of a share of the channels, and how many of these count
};

#ifdef TENSOR_CORES
// The sums of an uneven image's tile; parts: of its first channel, those of the next one `pitch` after it. All threads
// must call it.
__device__ __noinline__ void sums_in_double(const float* x, Parameters p, const float* gy, float2* parts, int64_t pitch,
                                            int n, int y0, int x0, Shape s, SumsShared& shared) {
    double2(*of_warp)[CHUNK] = reinterpret_cast<double2(*)[CHUNK]>(shared.x);
    static_assert(sizeof(double2[SUM_WARPS][CHUNK]) <= sizeof(shared.x), "the warps' sums lie where x does");
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    double2 sums[2] = {};
    for (int i = warp; i < SUM_ROWS * WIDE; i += SUM_WARPS) {
        const int row = y0 + i / WIDE, column = x0 + i % WIDE;
        if (row >= s.OH || column >= s.OW) continue;
        Element of[2];
        const double y = pixel_in_double(x, p, n, row, column, s, of);
        const double of_y = gy[((int64_t)n * s.OH + row) * s.OW + column];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const double gu = of_y * exp(of[k].z - y) * slope(of[k].tanh);
            sums[k] = {sums[k].x + gu, sums[k].y + gu * of[k].xh};
        }
    }
    __syncthreads();  // nobody reads the last tile any more
    for (int k = 0; k < 2; ++k) of_warp[warp][lane + k * WARP] = sums[k];
    __syncthreads();  // all warps have written
    if (threadIdx.x < s.OC) {
        double2 sum = {0.0, 0.0};
        for (int w = 0; w < SUM_WARPS; ++w) {
            sum = {sum.x + of_warp[w][threadIdx.x].x, sum.y + of_warp[w][threadIdx.x].y};
        }
        for (int k = 0; k < SUM_MAKERS; ++k) {
            parts[threadIdx.x * pitch + k] = k ? make_float2(0.0f, 0.0f) : make_float2(sum.x, sum.y);
        }
    }
}
#endif

template <bool CORRECT>
__global__ void __launch_bounds__(SUM_WARPS* WARP, SUM_BLOCKS)
    sums_kernel(const float* x, const float* y, const float* gy, const float* conv_weight, const float* conv_bias,
                const float* gamma, const float* beta, const float2* statistics, const Image* images,
                const Prepared* prepared, float* factors, float2* parts, int channels_a_group, Shape s) {
#ifdef TENSOR_CORES
    extern __shared__ uint4 shared_memory[];
    SumsShared& shared = *reinterpret_cast<SumsShared*>(shared_memory);
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const int share = warp % SHARES, maker = warp / SHARES, of_image = s.tiles_x * s.tiles_y;
    const uint32_t base = (uint32_t)__cvta_generic_to_shared(shared.x);
    bool any = !CORRECT;
    for (int tile = blockIdx.x; tile < s.tiles && CORRECT; tile += gridDim.x) {
        const int n = tile / of_image;
        any = any || (images[n].wide && !images[n].uneven);
        if (!images[n].uneven) continue;
        sums_in_double(x, {conv_weight, conv_bias, gamma, beta, statistics, channels_a_group}, gy,
                       parts + ((int64_t)n * s.OC * of_image + tile % of_image) * SUM_MAKERS,
                       (int64_t)of_image * SUM_MAKERS, n, tile % of_image / s.tiles_x * SUM_ROWS,
                       tile % s.tiles_x * WIDE, s, shared);
    }
    if (!any) return;  // all threads together
    Convolver convolver;
    convolver.load(prepared, share);
    Channel of_channel[4];
    int last = -1;
    float shift = 0.0f, up = 0.0f;
    bool care = false;
    for (int tile = blockIdx.x; tile < s.tiles; tile += gridDim.x) {
        const int n = tile / of_image, y0 = tile % of_image / s.tiles_x * SUM_ROWS, x0 = tile % s.tiles_x * WIDE;
        const bool wide = images[n].wide;
        if (images[n].uneven || (CORRECT && !wide)) continue;
        if (n != last) {
            last = n;
            const int exponent = images[n].exponent;
            up = power_of_two(exponent);
            shift = images[n].shift;
            care = careful(images[n], prepared);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                of_channel[c].load<false>(share * 16 + c / 2 * 8 + 2 * t + c % 2, conv_bias, gamma, beta, statistics,
                                          nullptr, prepared, n, channels_a_group, s.OC, exponent, shift, 0.0f, care);
            }
        }
        __syncthreads();  // nobody reads the last tile any more
        const float* image = x + (int64_t)n * s.C * s.H * s.W;
#pragma unroll 2
        for (int i = threadIdx.x; i < (SUM_ROWS + 2) * COLUMNS; i += SUM_WARPS * WARP) {
            const int row = i / COLUMNS, column = i % COLUMNS;
            Octet o;
            o.load(image, s, y0 + row, x0 + column);
            o.store<SPLIT == 3>(&shared.x[0][row][column], &shared.x[SPLIT == 3 ? 1 : 0][row][column], up);
        }
        const int64_t first = ((int64_t)n * s.OH + y0) * s.OW + x0;
        for (int i = threadIdx.x; i < SUM_ROWS * WIDE; i += SUM_WARPS * WARP) {
            const int row = i / WIDE, column = i % WIDE;
            const int64_t at = first + (int64_t)row * s.OW + column;
            float2 of = {1e30f, 0.0f};  // beyond the image exp gives 0
            if (y0 + row < s.OH && x0 + column < s.OW) {
                of = {__ldg(y + at), CORRECT ? 1.0f : gy[at]};
                if (wide) of = {marked(of.x, !CORRECT && factors[at] < 0), CORRECT ? 1.0f : of.y * fabsf(factors[at])};
                of = of_pixel(of.x, of.y, shift, wide);
            }
            shared.of_pixel[row][column] = of;
        }
        __syncthreads();  // the tile is complete
        float plain[4] = {}, weighted[4] = {};
        const int rows = min(SUM_ROWS, s.OH - y0), columns = min(WIDE, s.OW - x0);
        const auto all_jobs = [&](auto flag) {
            constexpr bool CAREFUL = decltype(flag)::value;
            [[maybe_unused]] float left[8] = {};  // of plain and weighted, by rounding
            for (int first_job = maker; first_job < rows * (WIDE / 16); first_job += SUM_MAKERS * PAIR) {
                float accs[PAIR][2][4], tails[PAIR][2][4];
                uint32_t from[PAIR][3];
#pragma unroll
                for (int q = 0; q < PAIR; ++q) {
                    const int job = first_job + q * SUM_MAKERS;
                    const int row = job / (WIDE / 16), column = job % (WIDE / 16) * 16;
#pragma unroll
                    for (int k = 0; k < 3; ++k) from[q][k] = base + ((row + k) * X_PITCH + column) * 16;
                }
                if (first_job % (WIDE / 16) * 16 >= columns) continue;
                convolver.make<CAREFUL && SPLIT == 3>(accs, tails, from, (SUM_ROWS + 2) * X_PITCH * 16);
#pragma unroll
                for (int q = 0; q < PAIR; ++q) {
                    const int job = first_job + q * SUM_MAKERS;
                    const int row = job / (WIDE / 16), column = job % (WIDE / 16) * 16;
                    float (&acc)[2][4] = accs[q];
                    if (column >= columns) continue;
                    const float2 of[2] = {shared.of_pixel[row][column + g], shared.of_pixel[row][column + 8 + g]};
                    [[maybe_unused]] float2 of_share[2] = {};
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const Channel &c0 = of_channel[2 * j], &c1 = of_channel[2 * j + 1];
                        float gz[4], part[4];
                        softmax<CAREFUL>(acc[j], c0, c1, of, gz, part, tails[q][j], [&](int k) {
                            const int o = share * 16 + j * 8 + 2 * t + k % 2;
                            const float* at = image + (int64_t)(y0 + row) * s.W + x0 + column + k / 2 * 8 + g;
                            const float* weight = conv_weight + (int64_t)o * s.C * TAPS;
                            return sum_in_double(at, weight, s.C, s.H, s.W) + __ldg(conv_bias + o) - shift;
                        });
#pragma unroll
                        for (int k = 0; k < 4; ++k) {
                            if constexpr (CORRECT) {
                                of_share[k / 2].x += gz[k];
                                of_share[k / 2].y += gz[k] > 0x1p-30f;
                            } else {
                                const Channel& c = k % 2 ? c1 : c0;
                                const float more = CAREFUL ? fmaf(tails[q][j][k], c.rate, c.constant) : c.constant;
                                const float gu = gz[k] * part[k], xh = fmaf(acc[j][k], c.rate, more);
                                const int i = 2 * j + k % 2;
                                if (CAREFUL) {
                                    add_with_rest(plain[i], left[i], gu);
                                    add_with_rest(weighted[i], left[4 + i], gu * xh);
                                } else {
                                    plain[i] += gu;
                                    weighted[i] = fmaf(gu, xh, weighted[i]);
                                }
                            }
                        }
                    }
                    if constexpr (CORRECT) {
#pragma unroll
                        for (int h = 0; h < 2; ++h) {
                            for (int o = 1; o < 4; o *= 2) {
                                of_share[h].x += __shfl_xor_sync(ALL_LANES, of_share[h].x, o);
                                of_share[h].y += __shfl_xor_sync(ALL_LANES, of_share[h].y, o);
                            }
                            if (t == 0) shared.shares[share][row][column + h * 8 + g] = of_share[h];
                        }
                    }
                }
            }
            for (int i = 0; i < 4 && CAREFUL && !CORRECT; ++i) {
                plain[i] = with_rest(plain[i], left[i]);
                weighted[i] = with_rest(weighted[i], left[4 + i]);
            }
        };
        if constexpr (CORRECT) {
            for (bool again = true; again;) {  // where a pixel is to be marked, the tile is done once more
                all_jobs(Flag<true>());
                __syncthreads();  // all shares are there
                again = false;
                for (int i = threadIdx.x; i < rows * WIDE; i += SUM_WARPS * WARP) {
                    const int row = i / WIDE, column = i % WIDE;
                    if (column >= columns) continue;
                    float2 sum = {0.0f, 0.0f};
                    for (int k = 0; k < SHARES; ++k) {
                        const float2 v = shared.shares[k][row][column];
                        sum = {sum.x + v.x, sum.y + v.y};
                    }
                    const int64_t at = first + (int64_t)row * s.OW + column;
                    const float of_y = shared.of_pixel[row][column].x;
                    if (SPLIT == 3 && sum.y > 1.0f && fabsf(of_y) > EXTREME && !is_marked(of_y)) {
                        shared.of_pixel[row][column] = of_pixel(marked(__ldg(y + at), true), 1.0f, shift, wide);
                        again = true;
                    } else {
                        factors[at] = (is_marked(of_y) ? -1.0f : 1.0f) / sum.x;
                    }
                }
                again = __syncthreads_or(again);
            }
        } else {
            if (care)
                all_jobs(Flag<true>());
            else
                all_jobs(Flag<false>());
#pragma unroll
            for (int c = 0; c < 4; ++c) {
#pragma unroll
                for (int o = 4; o < WARP; o *= 2) {
                    plain[c] += __shfl_xor_sync(ALL_LANES, plain[c], o);
                    weighted[c] += __shfl_xor_sync(ALL_LANES, weighted[c], o);
                }
                const int channel = share * 16 + c / 2 * 8 + 2 * t + c % 2;
                if (g == 0 && channel < s.OC) {
                    parts[(((int64_t)n * s.OC + channel) * of_image + tile % of_image) * SUM_MAKERS + maker] =
                        make_float2(plain[c], weighted[c]);
                }
            }
        }
    }
#endif
}

// One block an image: parts, `count` a channel -> sums of each channel (N, OC); terms (N, groups): a and b, the means
// of both over a group, weighted; images: gv's exponent, such that a bound of gv comes to 2^14 to 2^15.
__global__ void __launch_bounds__(THREADS)
    terms_kernel(const float2* parts, const float* gamma, const float2* statistics, Image* images, float* plain,
                 float* weighted, float2* terms, int64_t count, int channels_a_group, Shape s) {
#ifdef TENSOR_CORES
    __shared__ double2 of_channel[CHUNK];
    __shared__ float bounds[CHUNK];
    constexpr int EACH = THREADS / CHUNK;  // threads for a channel
    const int n = blockIdx.x, groups = s.OC / channels_a_group, c = threadIdx.x / EACH;
    const int64_t channel = (int64_t)n * s.OC + c;
    double2 sum = {0.0, 0.0};
    if (c < s.OC) {
#pragma unroll 8
        for (int64_t i = threadIdx.x % EACH; i < count; i += EACH) {
            const float2 v = parts[channel * count + i];
            sum = {sum.x + v.x, sum.y + v.y};
        }
    }
#pragma unroll
    for (int o = EACH / 2; o > 0; o /= 2) {
        sum.x += __shfl_xor_sync(ALL_LANES, sum.x, o);
        sum.y += __shfl_xor_sync(ALL_LANES, sum.y, o);
    }
    if (c < s.OC && threadIdx.x % EACH == 0) {
        plain[channel] = sum.x;
        weighted[channel] = sum.y;
        of_channel[c] = sum;
    }
    __syncthreads();  // all channels are there
    if (threadIdx.x < groups) {
        const float elements = (float)channels_a_group * s.OH * s.OW, rstd = statistics[n * groups + threadIdx.x].y;
        float a = 0.0f, b = 0.0f, steepest = 0.0f;
        for (int c = threadIdx.x * channels_a_group; c < (int)(threadIdx.x + 1) * channels_a_group; ++c) {
            a += of_channel[c].x * gamma[c];
            b += of_channel[c].y * gamma[c];
            steepest = fmaxf(steepest, fabsf(gamma[c]));
        }
        a /= elements;
        b /= elements;
        terms[n * groups + threadIdx.x] = make_float2(a, b);
        // |gz| is at most |gy|, |gu| 0.55 times that, and |xh| the root of the number of elements.
        bounds[threadIdx.x] =
            images[n].largest * (1.0f + 0.55f * steepest * rstd) + (fabsf(a) + fabsf(b) * sqrtf(elements)) * rstd;
    }
    __syncthreads();  // all groups are there
    if (threadIdx.x > 0) return;
    float bound = 0.0f;
    for (int k = 0; k < groups; ++k) bound = fmaxf(bound, bounds[k]);
    images[n].gv_exponent = min(max(14 + 127 - (int)(__float_as_uint(bound) >> 23), -118), 80);
#endif
}
