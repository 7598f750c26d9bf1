// ---- outliers ----

// A number so many times as large as what is usual in its image is more than halves can stand: of x they keep no less
// than 2^-34 of the largest, and of gv, which it is multiplied by, 2^-34 of the largest as well. TF32's class has an
// error of 2^-11 anyway.
constexpr float OUTLYING = SPLIT == 3 ? 0x1p10f : 0x1p20f, DARK = 0x1p22f;

// The largest of image n, for a whole warp. usual: the largest of what statistics_kernel left; outlying: whether the
// largest is that far beyond it, or DARK times as far beyond all of a tile. Infinities are not: nothing is to be saved.
__device__ __forceinline__ float largest_of_image(const float* largest, int n, const Shape& s, float& usual,
                                                  bool& outlying) {
    const int tiles = s.tiles_x * s.tiles_y;
    float most = 0.0f, least = INFINITY;
    usual = 0.0f;
    for (int i = threadIdx.x % WARP; i < tiles; i += WARP) {
        const float* of_tile = largest + (int64_t)n * tiles + i;
        const float of_some = of_tile[s.tiles];
        most = fmaxf(most, of_tile[0]);
        least = fminf(least, of_some);
        if (of_some < INFINITY) usual = fmaxf(usual, of_some);
    }
    for (int o = WARP / 2; o > 0; o /= 2) {
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, o));
        usual = fmaxf(usual, __shfl_xor_sync(ALL_LANES, usual, o));
        least = fminf(least, __shfl_xor_sync(ALL_LANES, least, o));
    }
    outlying = most < INFINITY && (most > OUTLYING * usual || most > DARK * least);
    return most;
}

// What the halves of forward keep of a number: in TF32's class 11 bits, or else the mean and rstd are not those of v.
__device__ __forceinline__ double as_factor(float v) {
    if constexpr (SPLIT == 3) return v;
    const uint32_t bits = __float_as_uint(v);
    return __uint_as_float((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);  // the nearest, of two the even one
}

// v at one pixel of an image, in double, from a channel's weights and bias.
__device__ __forceinline__ double exact_v(const float* image, const float* weight, float bias, int row, int column,
                                          const Shape& s) {
    double v = bias;
    for (int k = 0; k < s.C * 9; ++k) {
        const float* line = image + ((int64_t)(k / 9) * s.H + row + k % 9 / 3) * s.W;
        v += as_factor(weight[k]) * as_factor(line[column + k % 3]);
    }
    return v;
}

// A group's mean and 1 / sqrt(variance + eps), its planes' deviations and windows by sums in double, from x: a few
// pixels far beyond all others make the mean and the variance alone, and no other pixels' errors are there to cancel
// theirs. about: some pixels' mean. All threads of a block must call it; it ends with a barrier.
__device__ __noinline__ float2 exact_statistics(const float* image, const float* weight, const float* bias,
                                                const float* gamma, const float* factor, float* windows,
                                                float* deviations, double about, int channels, float eps, Shape s) {
    __shared__ double of_warp[2][THREADS / WARP];
    const int pixels = s.OH * s.OW, PH = s.OH / 4, PW = s.OW / 4, pitch = s.tiles_x * (WIDE / 4);
    double all = 0.0, squares = 0.0;
    for (int c = 0; c < channels; ++c) {
        double v[2] = {};
        for (int i = threadIdx.x; i < pixels; i += THREADS) {
            const double d = exact_v(image, weight + c * s.C * 9, bias[c], i / s.OW, i % s.OW, s) - about;
            v[0] += d;
            v[1] += d * d;
        }
        for (int h = 0; h < 2; ++h) {
            for (int o = WARP / 2; o > 0; o /= 2) v[h] += __shfl_xor_sync(ALL_LANES, v[h], o);
            if (threadIdx.x % WARP == 0) of_warp[h][threadIdx.x / WARP] = v[h];
        }
        __syncthreads();  // all warps have written
        double sum = 0.0;
        for (int w = 0; w < THREADS / WARP; ++w) sum += of_warp[0][w], squares += of_warp[1][w];
        if (threadIdx.x == 0) deviations[c] = sum;
        all += sum;
        const float sign = (gamma[c] < 0.0f) != (factor[c] < 0.0f) ? -1.0f : 1.0f;
        for (int i = threadIdx.x; i < PH * PW; i += THREADS) {
            const int row = i / PW, px = i % PW;
            double best = -INFINITY;
            for (int p = 0; p < 16; ++p) {
                const int y = row * 4 + p / 4, x = px * 4 + p % 4;
                best = fmax(best, exact_v(image, weight + c * s.C * 9, bias[c], y, x, s) * sign);
            }
            windows[(c * PH + row) * pitch + px / 8 * 8 + px % 2 * 4 + px % 8 / 2] = best * sign;
        }
        __syncthreads();  // nobody reads the warps' sums any more, and the windows are there
    }
    const double count = (double)channels * pixels, off = all / count;
    if (threadIdx.x == 0) {
        for (int c = 0; c < channels; ++c) deviations[c] -= off * pixels;
    }
    return {(float)(about + off), 1.0f / sqrtf((float)(squares / count - off * off) + eps)};
}
