// ---- backward on tensor cores ----
//
// Pixels are the rows of mma's matrices and channels their columns, other than in forward: gv is left in shared memory
// 8 channels in 16 bytes, as x is, so that gx finds its neighbours and gconv_weight, transposed, its channels.

constexpr int TAPS = 9;
constexpr bool BOTH = SPLIT == 3 || WEIGHT_SPLIT == 3;  // halves of gv, and what these leave
constexpr int SHARES = CHUNK / 16;  // a warp makes 16 channels of v, so that so many make them all
constexpr int HALO = 2;  // columns of gv to the left of a strip that gx reads
constexpr int STRIP = WIDE - HALO;  // columns from a strip to the next
constexpr int X_PITCH = WIDE + 4;  // pixels of a row of x in shared memory, of which COLUMNS are used
constexpr int PAIR = SPLIT == 3 ? 1 : 2;  // 16 pixels, so many times at once, lest a warp waits for one sum after the
#if !TF32
// other
constexpr bool COARSE = false;  // whether tanh has 11 bits, as TF32's products have
#else
// other
constexpr bool COARSE = true;  // whether tanh has 11 bits, as TF32's products have
#endif
constexpr int PREPARERS = 8;  // blocks that lay the weights out

// What prepare_kernel leaves: weights as mma wants them, in halves and what these leave, and their scales.
struct Prepared {
    uint2 conv[SHARES][2][TAPS][WARP];  // columns of 8 channels; upper, lower
    uint4 gx[3][SHARES][3][WARP];  // by kx, 16 channels, ky: two of upper, two of lower
    float unscale[CHUNK];  // takes back the scale of a channel in `conv`
    int exponent, unused[3];  // of the scale in `gx`
};

// What is known of an image: the exponents of the scales of x and of gv; the largest mean of its groups, which is taken
// off every value as in forward; gy's largest magnitude; x's, as a part of a group's largest deviation; whether values
// are so large that y's last digits matter; and whether halves with one scale for the image are not good enough.
struct Image {
    int exponent, gv_exponent;
    float shift, largest, contrast;
    bool wide, uneven;
};

// Whether an image gets more care, at some cost: where values are large, gradients hang on their last digits, so that
// sums are rounded, not cut as by tensor cores; where x hardly changes a value, a coarse tanh is the largest error.
__device__ __forceinline__ bool careful(const Image& image, const Prepared* prepared) {
    return image.wide || (COARSE && image.contrast < exp2f(prepared->exponent - 14));
}

template <bool B>
struct Flag {
    static constexpr bool value = B;
};

// A tap's place in Prepared::conv, 2 of which make an mma: 0 and 1, 3 and 4, 6 and 7, 2 and 5, and 8 alone.
__host__ __device__ constexpr int tap_at(int i) { return i < 6 ? i / 2 * 3 + i % 2 : (i - 6) * 3 + 2; }

// What hardswish(tanh(u)) gains as u does, from tanh(u).
__device__ __forceinline__ double slope(double tanh) { return (1 - tanh * tanh) * (2 * tanh + 3) / 6; }

#ifdef TENSOR_CORES
// weight -> prepared, by the first PREPARERS blocks, each a part of it.
__device__ __forceinline__ void prepare(const float* weight, Prepared* prepared, int C, int OC) {
    __shared__ float of_channel[CHUNK], all;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, terms = C * TAPS;
#pragma unroll
    for (int o = warp; o < CHUNK; o += THREADS / WARP) {
        float largest = 0.0f;
#pragma unroll
        for (int i = lane; i < IN * TAPS; i += WARP) {
            const float v = o < OC && i < terms ? fabsf(__ldg(weight + o * terms + i)) : 0.0f;
            if (v < INFINITY) largest = fmaxf(largest, v);
        }
        largest = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(largest)));
        if (lane == 0) of_channel[o] = largest;
    }
    __syncthreads();  // all channels are known
    if (warp == 0) {
        const float largest = fmaxf(of_channel[lane], of_channel[lane + WARP]);
        const unsigned bits = __reduce_max_sync(ALL_LANES, __float_as_uint(largest));
        if (lane == 0) all = __uint_as_float(bits);
    }
    __syncthreads();  // the largest of all is known
    const int e = exponent_for(all), step = PREPARERS * THREADS, from = blockIdx.x * THREADS + threadIdx.x;
    const auto at = [&](int o, int c, int tap) { return o < OC && c < C ? weight[(o * C + c) * TAPS + tap] : 0.0f; };
    if (from < CHUNK) prepared->unscale[from] = power_of_two(-exponent_for(of_channel[from]));
    if (from == 0) prepared->exponent = e;
    for (int i = from; i < CHUNK / 8 * TAPS * WARP; i += step) {
        const int g = i % WARP / 4, t = i % 4, o = i / WARP / TAPS * 8 + g, tap = tap_at(i / WARP % TAPS);
        const float up = power_of_two(exponent_for(of_channel[o]));
        const float a = at(o, 2 * t, tap) * up, b = at(o, 2 * t + 1, tap) * up;
        const uint32_t h = halves(a, b);
        (&prepared->conv[0][0][0][0])[i] = make_uint2(h, rest(h, a, b));
    }
    const float up = power_of_two(e);
    for (int i = from; i < TAPS * SHARES * WARP; i += step) {
        const int g = i % WARP / 4, t = i % 4, k = i / WARP, tap = k % 3 * 3 + k / 3 / SHARES;
        const int o = k / 3 % SHARES * 16 + 2 * t;
        const float a = at(o, g, tap) * up, b = at(o + 1, g, tap) * up;
        const float c = at(o + 8, g, tap) * up, d = at(o + 9, g, tap) * up;
        const uint32_t low = halves(a, b), high = halves(c, d);
        (&prepared->gx[0][0][0][0])[i] = make_uint4(low, high, rest(low, a, b), rest(high, c, d));
    }
}

// An image's x, gy, statistics and the `count` largest numbers of its x -> image. Infinity and NaN count as nothing:
// they stay what they are with any scale. A negative one of the largest numbers says that x is to be looked at.
__device__ __forceinline__ void describe(const float* x, const float* gy, const float2* statistics, const float* of_x,
                                         int count, Image* image, int groups, const Shape& s) {
    __shared__ float of_warp[THREADS / WARP];
    const int lane = threadIdx.x % WARP, pixels = s.OH * s.OW;
    float most = 0.0f;
    bool beyond = false, uneven = false;
    for (int i = threadIdx.x; i < count; i += THREADS) beyond = beyond || of_x[i] < 0.0f;
#pragma unroll 8
    for (int i = threadIdx.x; i < pixels; i += THREADS) {
        const float v = fabsf(__ldg(gy + i));
        most = v < INFINITY ? fmaxf(most, v) : most;
    }
    most = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(most)));
    if (lane == 0) of_warp[threadIdx.x / WARP] = most;
    beyond = __syncthreads_or(beyond);  // all warps have written
    if (beyond) {
        float largest = 0.0f;
        for (int i = 0; i < count; ++i) largest = fmaxf(largest, -of_x[i]);
        const float enough = power_of_two(-exponent_for(largest));
        for (int i = threadIdx.x; i < s.H * s.W; i += THREADS) {
            float of_pixel = 0.0f;
            for (int c = 0; c < s.C; ++c) of_pixel = fmaxf(of_pixel, fabsf(__ldg(x + (int64_t)c * s.H * s.W + i)));
            uneven = uneven || (of_pixel > 0.0f && of_pixel < enough);
        }
        uneven = __syncthreads_or(uneven);
    }
    if (threadIdx.x >= WARP) return;
    for (int w = 1; w < THREADS / WARP; ++w) most = fmaxf(most, of_warp[w]);
    float largest = 0.0f, top = -INFINITY, least = INFINITY, deviation = 0.0f;
    for (int i = lane; i < count; i += WARP) {
        const float v = fabsf(of_x[i]);
        largest = v < INFINITY ? fmaxf(largest, v) : largest;
    }
    for (int k = lane; k < groups; k += WARP) {
        const float2 of_group = statistics[k];
        top = fmaxf(top, of_group.x);
        least = fminf(least, of_group.x);
        deviation = fmaxf(deviation, 1.0f / of_group.y);
    }
#pragma unroll
    for (int o = WARP / 2; o > 0; o /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, o));
        top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, o));
        least = fminf(least, __shfl_xor_sync(ALL_LANES, least, o));
        deviation = fmaxf(deviation, __shfl_xor_sync(ALL_LANES, deviation, o));
    }
    const bool wide = fabsf(top) + (top - least) + 4.0f * deviation > 16.0f;
    if (lane == 0) *image = {exponent_for(largest), 0, wide ? 0.0f : top, most, largest / deviation, wide, uneven};
}
#endif

// Everything that is to be known before v is made again. Blocks: PREPARERS, and one an image. largest (N, count).
__global__ void __launch_bounds__(THREADS)
    setup_kernel(const float* x, const float* weight, const float* gy, const float2* statistics, const float* largest,
                 int count, Prepared* prepared, Image* images, int groups, Shape s) {
#ifdef TENSOR_CORES
    const int64_t n = (int64_t)blockIdx.x - PREPARERS;
    if (n < 0) {
        prepare(weight, prepared, s.C, s.OC);
    } else {
        describe(x + n * s.C * s.H * s.W, gy + n * s.OH * s.OW, statistics + n * groups, largest + n * count, count,
                 images + n, groups, s);
    }
#endif
}
