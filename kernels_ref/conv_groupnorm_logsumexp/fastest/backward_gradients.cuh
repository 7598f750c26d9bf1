// Second pass: gv, the gradient of the convolution's result, row by row, and what becomes of it; it is never in memory.
// The block goes down a strip of an image. Half of its warps make a row of gv and leave it in shared memory, while the
// others take the row above: four for gx, four for gconv_weight.
constexpr int MAKERS = 2;  // warps that make the same channels
constexpr int MAKER_WARPS = SHARES * MAKERS, GX_WARPS = 4, WEIGHT_WARPS = SHARES;
constexpr int LAST_THREADS = (MAKER_WARPS + GX_WARPS + WEIGHT_WARPS) * WARP;
constexpr int RING = 8;  // rows of x that are there
constexpr int GV_PITCH = HALO + WIDE, GV_PLANE = GV_PITCH * 16, GV_LOW = CHUNK / 8 * GV_PLANE;
constexpr int GX_TALL = WIDE / 16 / GX_WARPS;  // 16 pixels, so many times a warp
static_assert(WIDE / 16 % (MAKERS * PAIR) == 0 && WIDE / 16 % (SUM_MAKERS * PAIR) == 0, "no pair is cut");
static_assert(COLUMNS <= (GX_WARPS + WEIGHT_WARPS) * WARP, "those who do not make gv bring a row of x, a pixel each");

struct LastShared {
    uint4 x[2][RING][X_PITCH];  // upper halves, then lower ones
    uint4 gv[2][BOTH ? 2 : 1][CHUNK / 8][GV_PITCH];  // of two rows; the first HALO columns of it stay 0
    uint4 weight[3][SHARES][3][WARP];  // as in Prepared
    float2 of_pixel[2][WIDE];  // of two rows: y and gy as `softmax` wants them
    float4 sums[WEIGHT_WARPS][TAPS][WARP];  // gconv_weight, as it lies in add_to_weight's registers
};

// A strip of an image: `s.tiles_x` of them next to each other, each cut into `s.tiles_y` parts below each other. The
// first strip's gx has two columns more, on the left, than those of the others; the last part's two rows more.
struct Strip {
    int n, x0, begin, end, skip;  // image; first column of gv; rows of gx and gv; columns that the strip before has had

    __device__ __forceinline__ Strip(int i, const Shape& s) {
        const int part = i % s.tiles_y;
        n = i / s.tiles_y / s.tiles_x;
        x0 = i / s.tiles_y % s.tiles_x * STRIP;
        begin = (int64_t)s.OH * part / s.tiles_y;
        end = (int64_t)s.OH * (part + 1) / s.tiles_y;
        skip = x0 ? HALO : 0;
    }
};

#ifdef TENSOR_CORES
// For all threads, wherever they stand: those that make gv wait here for those that take it, and the other way round.
// Unlike __syncthreads() it may stand in several places, where threads of one block meet from different ones.
__device__ __forceinline__ void meet() { asm volatile("barrier.sync 0;" ::: "memory"); }

// One row of gv, at the address gv, to gx of that row and the two below: acc[ky][i] has channels 2 t (+ 1) of pixels
// 16 i + g (and g + 8, last two) from `column` on. Tensor cores cut their sums, float32 rounds: with SPLIT 3 only
// products of the same 16 channels of gv and the same tap are summed there.
__device__ __forceinline__ void add_to_gx(float (&acc)[3][GX_TALL][4], uint32_t gv, const LastShared& shared,
                                          int column) {
    constexpr int SUMS = 3 * GX_TALL;  // each waits for the next product until all others had one
    const int lane = threadIdx.x % WARP;
    gv += (HALO + column + lane % 16) * 16 + lane / 16 * GV_PLANE;
#pragma unroll
    for (int kx = 0; kx < 3; ++kx) {
        float part[SUMS][4] = {};
#pragma unroll
        for (int k = 0; k < SHARES; ++k) {
            uint32_t high[GX_TALL][4], low[GX_TALL][4];
            uint4 w[3];
            const uint32_t from = gv + k * 2 * GV_PLANE - kx * 16;  // kx pixels to the left
#pragma unroll
            for (int i = 0; i < GX_TALL; ++i) fragments(high[i], from + i * 256);
            if (SPLIT == 3) {
#pragma unroll
                for (int i = 0; i < GX_TALL; ++i) fragments(low[i], from + i * 256 + GV_LOW);
            }
#pragma unroll
            for (int ky = 0; ky < 3; ++ky) w[ky] = shared.weight[kx][k][ky][lane];
            if constexpr (SPLIT == 3) {
#pragma unroll
                for (int i = 0; i < SUMS; ++i) mma16(part[i], low[i % GX_TALL], w[i / GX_TALL].x, w[i / GX_TALL].y);
#pragma unroll
                for (int i = 0; i < SUMS; ++i) mma16(part[i], high[i % GX_TALL], w[i / GX_TALL].z, w[i / GX_TALL].w);
            }
#pragma unroll
            for (int i = 0; i < SUMS; ++i) mma16(part[i], high[i % GX_TALL], w[i / GX_TALL].x, w[i / GX_TALL].y);
#pragma unroll
            for (int i = 0; i < SUMS * 4; ++i) {
                if (SPLIT == 1 && k < SHARES - 1) break;
                acc[i / 4 / GX_TALL][i / 4 % GX_TALL][i % 4] += part[i / 4][i % 4];
                part[i / 4][i % 4] = 0.0f;
            }
        }
    }
}

// One row of gv and three of x, at these addresses, to the products of 16 channels of gv with all taps: sum[tap] has
// channels g (and g + 8, last two) of gv and 2 t (+ 1) of x. The first `skip` columns do not count.
__device__ __forceinline__ void add_to_weight(float (&sum)[TAPS][4], uint32_t gv, const uint32_t (&row)[3], int share,
                                              int columns, int skip) {
    const int lane = threadIdx.x % WARP, matrix = lane / 8;
    gv += (HALO + lane % 8 + matrix / 2 * 8) * 16 + (share * 2 + matrix % 2) * GV_PLANE;
    constexpr int LOADS = WEIGHT_SPLIT == 3 ? TAPS : (TAPS + 1) / 2;
    uint32_t at[LOADS];  // of four matrices: upper and lower halves of a tap's pixels, or the upper ones of two taps
#pragma unroll
    for (int k = 0; k < LOADS; ++k) {
        const int one = WEIGHT_SPLIT == 3 ? k : 2 * k, two = min(one + 1, TAPS - 1);
        const uint32_t upper = row[one / 3] + one % 3 * 16, other = row[two / 3] + two % 3 * 16;
        const uint32_t second = WEIGHT_SPLIT == 3 ? upper + RING * X_PITCH * 16 : other;
        at[k] = lane % 16 * 16 + (lane < 16 ? upper : second);
    }
#pragma unroll 2
    for (int column = 0; column < columns; column += 16) {
        uint32_t a[4], low[4], b[LOADS][4];
        fragments_transposed(a, gv + column * 16);
        if (WEIGHT_SPLIT == 3) fragments_transposed(low, gv + column * 16 + GV_LOW);
#pragma unroll
        for (int k = 0; k < LOADS; ++k) fragments_transposed(b[k], at[k] + column * 16);
        if (column < skip && lane % 4 == 0) {  // HALO is 2: pixels 2 t and 2 t + 1 lie in one register
            a[0] = a[1] = 0;
            if (WEIGHT_SPLIT == 3) low[0] = low[1] = 0;
        }
        if constexpr (WEIGHT_SPLIT == 3) {
#pragma unroll
            for (int k = 0; k < TAPS; ++k) mma16(sum[k], low, b[k][0], b[k][1]);
#pragma unroll
            for (int k = 0; k < TAPS; ++k) mma16(sum[k], a, b[k][2], b[k][3]);
#pragma unroll
            for (int k = 0; k < TAPS; ++k) mma16(sum[k], a, b[k][0], b[k][1]);
        } else {
#pragma unroll
            for (int k = 0; k < TAPS; ++k) mma16(sum[k], a, b[k / 2][k % 2 * 2], b[k / 2][k % 2 * 2 + 1]);
        }
    }
}
#endif

// What gradients_kernel reads and writes. weights (blocks, OC, C * TAPS): each block's part of gconv_weight, or null;
// biases (strips, MAKERS, CHUNK): the same of gconv_bias; gx may be null.
struct Arrays {
    const float *x, *y, *gy, *factors, *conv_weight, *conv_bias, *gamma, *beta;
    const float2 *statistics, *terms;
    const Image* images;
    const Prepared* prepared;
    float *gx, *weights, *biases;
    int channels_a_group;
};

#ifdef TENSOR_CORES
__device__ __forceinline__ void rows_of_x(const LastShared& shared, int row, uint32_t (&at)[3]) {
    const uint32_t base = (uint32_t)__cvta_generic_to_shared(shared.x);
#pragma unroll
    for (int k = 0; k < 3; ++k) at[k] = base + (row + k) % RING * (X_PITCH * 16);
}

__device__ __forceinline__ uint32_t row_of_gv(const LastShared& shared, int row) {
    return (uint32_t)__cvta_generic_to_shared(shared.gv) + row % 2 * (uint32_t)(sizeof(shared.gv) / 2);
}

// The warps that make gv.
template <bool CAREFUL>
__device__ __forceinline__ void make_gv(const Arrays& p, const Shape& s, LastShared& shared) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const int share = warp % SHARES, maker = warp / SHARES;
    Convolver convolver;
    convolver.load(p.prepared, share);
    for (int i = blockIdx.x; i < s.tiles; i += gridDim.x) {
        const Strip strip(i, s);
        const int first = max(strip.begin - HALO, 0), columns = min(WIDE, s.OW - strip.x0);
        const Image image = p.images[strip.n];
        if (image.uneven || careful(image, p.prepared) != CAREFUL) continue;
        Channel of_channel[4];
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            of_channel[c].load<true>(share * 16 + c / 2 * 8 + 2 * t + c % 2, p.conv_bias, p.gamma, p.beta, p.statistics,
                                     p.terms, p.prepared, strip.n, p.channels_a_group, s.OC, image.exponent,
                                     image.shift, power_of_two(image.gv_exponent), CAREFUL);
        }
        float total[4] = {}, left[4] = {};  // CAREFUL: what rounding left of the former
        meet();  // nobody reads the last strip any more
        meet();  // the first rows are there
        for (int row = first; row <= strip.end; ++row) {
            if (row < strip.end) {
                uint32_t rows[3];
                rows_of_x(shared, row, rows);
                unsigned char* to = reinterpret_cast<unsigned char*>(shared.gv[row % 2]) + share * 2 * GV_PLANE +
                                    (HALO + g) * 16 + t * 4;
#pragma unroll 1
                for (int pair = maker * 16; pair < WIDE; pair += MAKERS * 16 * PAIR) {
                    float accs[PAIR][2][4], tails[PAIR][2][4];
                    uint32_t from[PAIR][3];
#pragma unroll
                    for (int i = 0; i < PAIR * 3; ++i) {
                        from[i / 3][i % 3] = rows[i % 3] + (pair + i / 3 * MAKERS * 16) * 16;
                    }
                    convolver.make<CAREFUL && SPLIT == 3>(accs, tails, from, RING * X_PITCH * 16);
#pragma unroll
                    for (int q = 0; q < PAIR; ++q) {
                        const int column = pair + q * MAKERS * 16;
                        float (&acc)[2][4] = accs[q];
                        const float2* pixel = shared.of_pixel[row % 2] + column + g;
                        const float2 of[2] = {pixel[0], pixel[8]};
                        float counts[2];  // not what another strip counts, nor what lies beyond the image
#pragma unroll
                        for (int h = 0; h < 2; ++h) {
                            const int at = column + h * 8 + g;
                            counts[h] = row >= strip.begin && at >= strip.skip && at < columns ? 1.0f : 0.0f;
                        }
#pragma unroll
                        for (int j = 0; j < 2; ++j) {
                            const Channel &c0 = of_channel[2 * j], &c1 = of_channel[2 * j + 1];
                            float gz[4], gv[4];
                            softmax<CAREFUL>(acc[j], c0, c1, of, gz, gv, tails[q][j], [&](int k) {
                                const int o = share * 16 + j * 8 + 2 * t + k % 2;
                                const int64_t at = ((int64_t)strip.n * s.C * s.H + row) * s.W + strip.x0 + column;
                                const float* weight = p.conv_weight + (int64_t)o * s.C * TAPS;
                                return sum_in_double(p.x + at + k / 2 * 8 + g, weight, s.C, s.H, s.W) +
                                       __ldg(p.conv_bias + o) - image.shift;
                            });
#pragma unroll
                            for (int k = 0; k < 4; ++k) {
                                const Channel& c = k % 2 ? c1 : c0;
                                const float off = fmaf(acc[j][k], c.rate, c.constant);
                                // CAREFUL: the factor's rounding would be alike in all pixels, and not lost in the sum.
                                gv[k] = CAREFUL ? gz[k] + fmaf(gz[k], gv[k] * c.weight, -off)
                                                : fmaf(gz[k], fmaf(gv[k], c.weight, 1.0f), -off);
                            }
#pragma unroll
                            for (int k = 0; k < 4; ++k) {
                                float& sum = total[2 * j + k % 2];
                                if (CAREFUL)
                                    add_with_rest(sum, left[2 * j + k % 2], gv[k] * counts[k / 2]);
                                else
                                    sum = fmaf(gv[k], counts[k / 2], sum);
                            }
#pragma unroll
                            for (int h = 0; h < 2; ++h) {
                                const uint32_t high = halves(gv[2 * h], gv[2 * h + 1]);
                                unsigned char* there = to + (column + h * 8) * 16 + j * GV_PLANE;
                                *reinterpret_cast<uint32_t*>(there) = high;
                                if (BOTH) {
                                    const uint32_t low = rest(high, gv[2 * h], gv[2 * h + 1]);
                                    *reinterpret_cast<uint32_t*>(there + GV_LOW) = low;
                                }
                            }
                        }
                        if (column + 16 <= columns) continue;
#pragma unroll
                        for (int h = 0; h < 4; ++h) {  // beyond the image there is no gv
                            unsigned char* there = to + (column + h / 2 * 8) * 16 + h % 2 * GV_PLANE;
                            if (column + h / 2 * 8 + g < columns) continue;
                            *reinterpret_cast<uint32_t*>(there) = 0;
                            if (BOTH) *reinterpret_cast<uint32_t*>(there + GV_LOW) = 0;
                        }
                    }
                }
            }
            meet();  // this row of gv is complete, and the last one done with
        }
        const float down = power_of_two(-image.gv_exponent);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
#pragma unroll
            for (int o = 4; o < WARP; o *= 2) {
                if (CAREFUL) left[c] += __shfl_xor_sync(ALL_LANES, left[c], o);
                total[c] += __shfl_xor_sync(ALL_LANES, total[c], o);
            }
            if (CAREFUL) total[c] = with_rest(total[c], left[c]);
            const int channel = share * 16 + c / 2 * 8 + 2 * t + c % 2;
            if (g == 0) p.biases[((int64_t)i * MAKERS + maker) * CHUNK + channel] = total[c] * down;
        }
    }
}

// The warps that take it, for gx or for gconv_weight. All of them bring x, y and gy: a thread a pixel of each row,
// which comes while the row before is worked on.
template <bool FOR_GX, bool CAREFUL>
__device__ __forceinline__ void take_gv(const Arrays& p, const Shape& s, LastShared& shared) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4, quarter = warp % 4;
    const int thread = threadIdx.x - MAKER_WARPS * WARP, of_y = thread - (LAST_THREADS - MAKER_WARPS * WARP - WIDE);
    float acc[3][GX_TALL][4] = {};
    float4(&sums)[TAPS][WARP] = shared.sums[quarter];
    if (!FOR_GX) {
        for (int k = 0; k < TAPS; ++k) sums[k][lane] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    for (int i = blockIdx.x; i < s.tiles; i += gridDim.x) {
        const Strip strip(i, s);
        const int first = max(strip.begin - HALO, 0), columns = min(WIDE, s.OW - strip.x0);
        const Image known = p.images[strip.n];
        if (known.uneven || careful(known, p.prepared) != CAREFUL) continue;
        const float x_up = power_of_two(known.exponent), up = power_of_two(known.gv_exponent);
        const float* image = p.x + (int64_t)strip.n * s.C * s.H * s.W;
        const int64_t plane = (int64_t)strip.n * s.OH * s.OW + strip.x0 + of_y;
        Octet octet;
        float2 of = {INFINITY, 0.0f};  // beyond the image exp gives 0
        const auto bring = [&](int row_of_x, int row) {
            if (thread < COLUMNS) octet.load(image, s, row_of_x, strip.x0 + thread);
            if (of_y >= 0 && row < s.OH && strip.x0 + of_y < s.OW) {
                const int64_t at = plane + (int64_t)row * s.OW;
                of = {__ldg(p.y + at), __ldg(p.gy + at)};
                if (CAREFUL && known.wide) {
                    const float factor = __ldg(p.factors + at);
                    of = {marked(of.x, factor < 0.0f), of.y * fabsf(factor)};
                }
            }
        };
        const auto put = [&](int row_of_x, int row) {
            if (thread < COLUMNS) {
                octet.store<true>(&shared.x[0][row_of_x % RING][thread], &shared.x[1][row_of_x % RING][thread], x_up);
            }
            const bool wide = CAREFUL && known.wide;
            if (of_y >= 0) shared.of_pixel[row % 2][of_y] = of_pixel(of.x, of.y * up, known.shift, wide);
        };
        meet();  // nobody reads the last strip any more
        for (int k = 0; k < 3; ++k) {
            bring(first + k, first);
            put(first + k, first);
        }
        bring(first + 3, first + 1);
        meet();  // the first rows are there

        // gx: a lane's first pixel in channel 2 t; its others lie `next` channels and 8 pixels further on
        const int column = quarter * GX_TALL * 16 + g;
        const int64_t next = (int64_t)s.H * s.W;
        float* gx = p.gx + ((int64_t)strip.n * s.C + 2 * t) * next + (int64_t)first * s.W + strip.x0 + column;
        const float down = power_of_two(-known.gv_exponent);
        const float w_down = FOR_GX ? power_of_two(-p.prepared->exponent) : power_of_two(-known.exponent);
        const bool busy = FOR_GX ? p.gx != nullptr && strip.x0 + quarter * GX_TALL * 16 < s.W : p.weights != nullptr;
        const auto write = [&](int row) {  // acc[0] to this row of gx, and the others one up
#pragma unroll
            for (int j = 0; j < GX_TALL * 4; ++j) {
                const int further = j / 2 * 8;
                const bool exists = column + further >= strip.skip && strip.x0 + column + further < s.W;
                if (row >= strip.begin && exists && 2 * t + j % 2 < s.C) {
                    gx[j % 2 * next + further] = acc[0][j / 4][j % 4] * down * w_down;
                }
                acc[0][j / 4][j % 4] = acc[1][j / 4][j % 4];
                acc[1][j / 4][j % 4] = acc[2][j / 4][j % 4];
                acc[2][j / 4][j % 4] = 0.0f;
            }
            gx += s.W;
        };
        for (int row = first; row <= strip.end; ++row) {
            put(row + 3, row + 1);
            bring(row + 4, row + 2);
            if (row > first && busy) {
                if constexpr (FOR_GX) {
                    add_to_gx(acc, row_of_gv(shared, row - 1), shared, quarter * GX_TALL * 16);
                    write(row - 1);
                } else if (row > strip.begin) {
                    float sum[TAPS][4] = {};
                    uint32_t from[3];
                    rows_of_x(shared, row - 1, from);
                    add_to_weight(sum, row_of_gv(shared, row - 1), from, quarter, columns, strip.skip);
#pragma unroll
                    for (int k = 0; k < TAPS; ++k) {  // tensor cores cut their sums, float32 rounds
                        float4 f = sums[k][lane];
                        f.x = fmaf(sum[k][0] * down, w_down, f.x);
                        f.y = fmaf(sum[k][1] * down, w_down, f.y);
                        f.z = fmaf(sum[k][2] * down, w_down, f.z);
                        f.w = fmaf(sum[k][3] * down, w_down, f.w);
                        sums[k][lane] = f;
                    }
                }
            }
            meet();  // the next row of gv is complete, and this one done with
        }
        if constexpr (FOR_GX) {
            if (busy && strip.end == s.OH) {
                write(s.OH);
                write(s.OH + 1);
            }
#pragma unroll
            for (int k = 0; k < 3 * GX_TALL * 4; ++k) acc[k / (GX_TALL * 4)][k / 4 % GX_TALL][k % 4] = 0.0f;
        }
    }
    if constexpr (!FOR_GX) {
        for (int k = 0; k < TAPS; ++k) {
            const float4 f = sums[k][lane];
            const float of_lane[4] = {f.x, f.y, f.z, f.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int o = quarter * 16 + g + i / 2 * 8, c = 2 * t + i % 2;
                if (p.weights != nullptr && o < s.OC && c < s.C) {
                    float* const to = p.weights + (((int64_t)blockIdx.x * s.OC + o) * s.C + c) * TAPS + k;
                    *to = CAREFUL ? *to + of_lane[i] : of_lane[i];
                }
            }
        }
    }
}
#endif

#ifdef TENSOR_CORES
// What is in shared memory for a strip of an uneven image: three rows of gv, whose first HALO columns stay 0; then each
// warp's sums of it.
union InDouble {
    float gv[3][CHUNK][GV_PITCH];
    double total[LAST_THREADS / WARP][CHUNK];
};
static_assert(sizeof(InDouble) <= sizeof(LastShared), "a strip in double has no more shared memory than any other");

// Strip i, of an uneven image: gv of a row is made in double, and goes to all three gradients as a float. All threads
// must call it.
__device__ __noinline__ void strip_in_double(Arrays p, int i, Shape s, InDouble& shared) {
    constexpr int WARPS = LAST_THREADS / WARP;
    constexpr int EACH = CHUNK * IN * TAPS / LAST_THREADS;  // of conv_weight's gradient, for a thread
    const Parameters parameters = {p.conv_weight, p.conv_bias, p.gamma, p.beta, p.statistics, p.channels_a_group};
    const Strip strip(i, s);
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, columns = min(WIDE, s.OW - strip.x0);
    const int weights = s.OC * s.C * TAPS, groups = s.OC / p.channels_a_group;
    const float* x = p.x + (int64_t)strip.n * s.C * s.H * s.W + strip.x0;
    double total[2] = {}, of_weight[EACH] = {};
    __syncthreads();  // nobody reads the last strip any more
    for (int k = threadIdx.x; k < 3 * CHUNK * GV_PITCH; k += LAST_THREADS) (&shared.gv[0][0][0])[k] = 0.0f;
    for (int row = max(strip.begin - HALO, 0); row < (strip.end == s.OH ? s.H : strip.end); ++row) {
        __syncthreads();  // nobody reads the row any more that this one replaces
        for (int column = warp; column < WIDE; column += WARPS) {
            Element of[2];
            double y = 0.0, gy = 0.0;
            const bool inside = row < s.OH && column < columns;
            if (inside) {
                y = pixel_in_double(p.x, parameters, strip.n, row, strip.x0 + column, s, of);
                gy = p.gy[((int64_t)strip.n * s.OH + row) * s.OW + strip.x0 + column];
            }
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                const int c = lane + k * WARP;
                double gv = 0.0;
                if (inside && c < s.OC) {
                    const int64_t group = (int64_t)strip.n * groups + c / p.channels_a_group;
                    const double gz = gy * exp(of[k].z - y), gu = gz * slope(of[k].tanh) * p.gamma[c];
                    gv = gz + (gu - p.terms[group].x - of[k].xh * p.terms[group].y) * p.statistics[group].y;
                }
                shared.gv[row % 3][c][HALO + column] = gv;
                if (row >= strip.begin && column >= strip.skip) total[k] += gv;
            }
        }
        __syncthreads();  // this row of gv is complete
        if (row < strip.begin) continue;
        for (int k = threadIdx.x; k < s.C * WIDE && p.gx != nullptr; k += LAST_THREADS) {
            const int c = k / WIDE, column = k % WIDE;
            if (column < strip.skip || strip.x0 + column >= s.W) continue;
            double sum = 0.0;
            for (int o = 0; o < s.OC; ++o) {
#pragma unroll
                for (int tap = 0; tap < TAPS; ++tap) {
                    const double gv = shared.gv[(row + 3 - tap / 3) % 3][o][HALO + column - tap % 3];
                    sum = fma(gv, (double)__ldg(p.conv_weight + ((int64_t)o * s.C + c) * TAPS + tap), sum);
                }
            }
            p.gx[(((int64_t)strip.n * s.C + c) * s.H + row) * s.W + strip.x0 + column] = sum;
        }
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const int e = threadIdx.x + k * LAST_THREADS, o = e / TAPS / s.C, c = e / TAPS % s.C, tap = e % TAPS;
            if (e >= weights || row >= s.OH) continue;
            const float* at = x + ((int64_t)c * s.H + row + tap / 3) * s.W + tap % 3;
            for (int column = strip.skip; column < columns; ++column) {
                const double gv = shared.gv[row % 3][o][HALO + column];
                of_weight[k] = fma(gv, (double)__ldg(at + column), of_weight[k]);
            }
        }
    }
    __syncthreads();  // nobody reads gv any more
    for (int k = 0; k < 2; ++k) shared.total[warp][lane + k * WARP] = total[k];
    __syncthreads();  // all warps have written
    if (threadIdx.x < CHUNK) {
        double sum = 0.0;
        for (int w = 0; w < WARPS; ++w) sum += shared.total[w][threadIdx.x];
        for (int k = 0; k < MAKERS; ++k) {
            p.biases[((int64_t)i * MAKERS + k) * CHUNK + threadIdx.x] = k ? 0.0f : (float)sum;
        }
    }
    for (int k = 0; k < EACH && p.weights != nullptr; ++k) {
        const int e = threadIdx.x + k * LAST_THREADS;
        if (e < weights) p.weights[(int64_t)blockIdx.x * weights + e] += (float)of_weight[k];
    }
}
#endif

// First without, then, with CAREFUL, for images that get more care: one kernel would be slower for all. Uneven images
// are then done as well.
template <bool CAREFUL>
__global__ void __launch_bounds__(LAST_THREADS, 1) gradients_kernel(const Arrays p, const Shape s) {
#ifdef TENSOR_CORES
    bool any = !CAREFUL;
    for (int i = blockIdx.x; i < s.tiles && !any; i += gridDim.x) {
        const Image& image = p.images[i / s.tiles_y / s.tiles_x];
        any = image.uneven || careful(image, p.prepared);
    }
    if (!any) return;  // all threads together
    extern __shared__ uint4 shared_memory[];
    LastShared& shared = *reinterpret_cast<LastShared*>(shared_memory);
    const int warp = threadIdx.x / WARP;
    for (int i = threadIdx.x; i < (int)(sizeof(shared.gv) / 16); i += LAST_THREADS) {
        (&shared.gv[0][0][0][0])[i] = make_uint4(0, 0, 0, 0);
    }
    for (int i = threadIdx.x; i < TAPS * SHARES * WARP; i += LAST_THREADS) {
        (&shared.weight[0][0][0][0])[i] = __ldg(&p.prepared->gx[0][0][0][0] + i);
    }
    if (warp < MAKER_WARPS)
        make_gv<CAREFUL>(p, s, shared);
    else if (warp < MAKER_WARPS + GX_WARPS)
        take_gv<true, CAREFUL>(p, s, shared);
    else
        take_gv<false, CAREFUL>(p, s, shared);
    for (int i = blockIdx.x; i < s.tiles && CAREFUL; i += gridDim.x) {
        if (!p.images[i / s.tiles_y / s.tiles_x].uneven) continue;
        strip_in_double(p, i, s, *reinterpret_cast<InDouble*>(shared_memory));
    }
#endif
}
