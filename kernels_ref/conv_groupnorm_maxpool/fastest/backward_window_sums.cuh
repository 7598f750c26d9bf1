// ---- backward: sums over windows ----

// Backward sweeps over an image in strips of 4 rows and 128 columns of v. Where an image is wider, the next strip
// begins 124 columns on: its first 4 columns, the halo, belong to the one before, and are made again for what lies
// right of them.
constexpr int STEP = WIDE - 4, STRIP_WINDOWS = WIDE / 4;

// ---- backward on tensor cores ----
//
// Pixels are the rows of mma's matrices and channels their columns, other than in forward: gv is left in shared memory
// 8 channels in 16 bytes, as x is, so that gx finds its neighbours and gconv_weight, transposed, its channels.

constexpr int TAPS = 9;

// Which of two nearly equal pixels is the maximum makes all the difference to a gradient, and float32 does not know it
// where they are closer than its errors: then sums in double decide, a few times in a million. TF32 has too many such
// pixels, in eager as well.
constexpr bool EXACT = SPLIT == 3;

// As exponent_for, for numbers of backward: what leaves room for sums, and for bounds that are a little too low.
__device__ __forceinline__ int exponent_of_gradient(float largest) {
    const int e = 9 + 127 - (int)(__float_as_uint(largest) >> 23);
    return largest == 0.0f ? 0 : min(max(e, -110), 110);
}

// v at a window's first pixel, which counts where the normalisation's weight or the scale is 0: all pixels are equal.
__device__ float first_of_window(const float* x, const float* weight, float bias, const Shape& s, int n, int c, int row,
                                 int column) {
    float sum = bias;
    for (int k = 0; k < s.C * 9; ++k) {
        sum += x[(((int64_t)n * s.C + k / 9) * s.H + row + k % 9 / 3) * s.W + column + k % 3] * weight[c * s.C * 9 + k];
    }
    return sum;
}

// About the mean of image n, of some of its numbers: see gradient_kernel. For a whole warp. In TF32's class 0: other
// numbers would round otherwise than in forward.
__device__ float middle_of_image(const float* x, const float* largest, int n, const Shape& s) {
    constexpr int SOME = 4;  // for each lane
    if (SPLIT != 3) return 0.0f;
    float usual, sum = 0.0f;
    bool outlying;
    largest_of_image(largest, n, s, usual, outlying);
    const int64_t all = (int64_t)s.C * s.H * s.W;
    for (int i = 0; i < SOME; ++i) {
        const float v = x[n * all + all * (threadIdx.x % WARP * SOME + i) / (WARP * SOME)];
        sum += fminf(fmaxf(v, -usual), usual);  // NaN is none of either
    }
    for (int o = WARP / 2; o > 0; o /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, o);
    return outlying ? 0.0f : sum * (1.0f / (WARP * SOME));
}

// One block a group of an image. gy (N, OC, PH, PW) -> gm: gy where the clamp let the maximum pass, 0 elsewhere, for
// every strip 32 windows, eight in statistics_kernel's order: (N, OC, PH, strips, 32). sums (N, OC): of gm, and of gm
// times the maximum's xh. terms (N, groups): a, b, what no |gv| of the group exceeds, and the middle of the image.
__global__ void __launch_bounds__(THREADS)
    window_sums_kernel(const float* gy, const float* windows, const float2* means, const float* gamma,
                       const float* beta, const float* factor, const float* x, const float* weight, const float* bias,
                       const float* largest, float* gm, float2* sums, float4* terms, int channels_a_group, int strips,
                       Shape s, float low, float high) {
    constexpr int BATCH = 4, WARPS = THREADS / WARP;  // rows of windows that a warp reads before it writes
    __shared__ float of_warp[3][CHUNK][WARPS];  // sums of gm, of gm * (v - mean) * down, and the largest |gm|
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int groups = s.OC / channels_a_group, first = blockIdx.x % groups * channels_a_group;
    const int PH = s.OH / 4, PW = s.OW / 4, pitch = s.tiles_x * (WIDE / 4);
    const float2 of_group = means[blockIdx.x];
    // rstd's power of two, or 0: times v - mean before anything large is
    const float down = __uint_as_float(__float_as_uint(of_group.y) & 0x7f800000);
    for (int k = 0; k < channels_a_group; ++k) {
        const int c = first + k;
        const int64_t plane = (int64_t)blockIdx.x * channels_a_group + k;
        const float f = factor[c], slope = of_group.y * gamma[c] * f, offset = beta[c] * f;
        const bool level = gamma[c] == 0.0f || f == 0.0f;
        float sum = 0.0f, weighted = 0.0f, most = 0.0f;
        for (int strip = 0; strip < strips; ++strip) {
            const int px = strip * (STEP / 4) + lane / 8 * 8 + lane % 4 * 2 + lane % 8 / 4;
            const bool counts = px < PW && (strip == 0 || lane > 0);  // the halo was counted before
            const float* from = windows + plane * (PH * pitch) + px / 8 * 8 + px % 2 * 4 + px % 8 / 2;
            const float* of_gy = gy + plane * (PH * PW) + px;
            float* to = gm + (plane * PH * strips + strip) * STRIP_WINDOWS + lane;
            for (int begin = warp; begin < PH; begin += WARPS * BATCH) {
                float v[BATCH], g[BATCH];
#pragma unroll
                for (int j = 0; j < BATCH; ++j) {
                    const int row = begin + j * WARPS;
                    const bool in = row < PH && px < PW;
                    v[j] = in ? from[row * pitch] : 0.0f;
                    g[j] = in ? of_gy[row * PW] : 0.0f;
                }
#pragma unroll
                for (int j = 0; j < BATCH; ++j) {
                    const int row = begin + j * WARPS;
                    if (row >= PH) continue;
                    if (level && px < PW) {
                        v[j] = first_of_window(x, weight, bias[c], s, blockIdx.x / groups, c, row * 4, px * 4);
                    }
                    const float d = v[j] - of_group.x, u = d * slope + offset;
                    const float passed = low <= u && u <= high ? g[j] : 0.0f;
                    to[(int64_t)row * strips * STRIP_WINDOWS] = passed;
                    if (!counts) continue;
                    sum += passed;
                    weighted += passed * (d * down);  // 0 times NaN is NaN, as in eager
                    most = fmaxf(most, fabsf(passed));
                }
            }
        }
#pragma unroll
        for (int o = WARP / 2; o > 0; o /= 2) {
            sum += __shfl_xor_sync(ALL_LANES, sum, o);
            weighted += __shfl_xor_sync(ALL_LANES, weighted, o);
            most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, o));
        }
        if (lane == 0) of_warp[0][k][warp] = sum, of_warp[1][k][warp] = weighted, of_warp[2][k][warp] = most;
    }
    __syncthreads();  // all warps have written
    if (warp > 0) return;
    const float middle = middle_of_image(x, largest, blockIdx.x / groups, s);
    if (lane > 0) return;
    float a = 0.0f, b = 0.0f, bound = 0.0f;
    for (int k = 0; k < channels_a_group; ++k) {
        float2 sum = {0.0f, 0.0f};
        float most = 0.0f;
        for (int w = 0; w < WARPS; ++w) {
            sum = {sum.x + of_warp[0][k][w], sum.y + of_warp[1][k][w]};
            most = fmaxf(most, of_warp[2][k][w]);
        }
        sum.y *= down > 0.0f ? of_group.y / down : of_group.y;
        sums[(int64_t)blockIdx.x * channels_a_group + k] = sum;
        const float f = gamma[first + k] * factor[first + k];
        a += f * sum.x;
        b += f * sum.y;
        bound = fmaxf(bound, fabsf(f) * most);
    }
    const float count = (float)channels_a_group * s.OH * s.OW, part = 1.0f / count;
    a *= part;
    b *= part;
    // |xh| is at most the root of how many there are.
    terms[blockIdx.x] = {a, b, (bound + fabsf(a) + fabsf(b) * sqrtf(count)) * of_group.y, middle};
}

// One warp a channel: what is summed over the images, in their order. deviations (N, OC): each plane's sum of v - mean.
// of_middles: what the weight's gradient lacks where x is taken about the images' middles.
__global__ void channels_kernel(const float2* sums, const float4* terms, const float2* means, const float* deviations,
                                const float* gamma, const float* beta, const float* factor, float* ggamma, float* gbeta,
                                float* gfactor, float* gbias, float* of_middles, int N, int channels_a_group, Shape s) {
    const int c = blockIdx.x, groups = s.OC / channels_a_group;
    const double pixels = (double)s.OH * s.OW;
    double sum = 0.0, weighted = 0.0, of_v = 0.0, of_middle = 0.0;
    for (int n = threadIdx.x; n < N; n += WARP) {
        const int64_t plane = (int64_t)n * s.OC + c, group = (int64_t)n * groups + c / channels_a_group;
        const float2 of_plane = sums[plane];
        const float4 ab = terms[group];
        const double rstd = means[group].y;
        sum += of_plane.x;
        weighted += of_plane.y;
        const double gm = (double)gamma[c] * factor[c] * of_plane.x;
        const double gv = (gm - ab.x * pixels - ab.y * rstd * deviations[plane]) * rstd;
        of_v += gv;
        of_middle += gv * ab.w;
    }
    for (int o = WARP / 2; o > 0; o /= 2) {
        sum += __shfl_xor_sync(ALL_LANES, sum, o);
        weighted += __shfl_xor_sync(ALL_LANES, weighted, o);
        of_v += __shfl_xor_sync(ALL_LANES, of_v, o);
        of_middle += __shfl_xor_sync(ALL_LANES, of_middle, o);
    }
    if (threadIdx.x > 0) return;
    ggamma[c] = weighted * factor[c];
    gbeta[c] = sum * factor[c];
    gfactor[c] = weighted * gamma[c] + sum * beta[c];
    gbias[c] = of_v;
    of_middles[c] = of_middle;
}

// parts (blocks, 9, CHUNK, IN) -> gweight (OC, C, 9), summed over the blocks: one warp each, in an order of their own.
// of_middles: see channels_kernel.
__global__ void weight_kernel(const float* parts, const float* of_middles, float* gweight, int blocks, Shape s) {
    const int at = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int tap = at / (CHUNK * IN), c = at / IN % CHUNK, k = at % IN;
    if (tap >= TAPS || c >= s.OC || k >= s.C) return;  // a whole warp
    float sum = 0.0f;
    for (int i = lane; i < blocks; i += WARP) sum += parts[(int64_t)i * (TAPS * CHUNK * IN) + at];
#pragma unroll
    for (int o = WARP / 2; o > 0; o /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, o);
    if (lane == 0) gweight[(c * s.C + k) * TAPS + tap] = sum + of_middles[c];
}
