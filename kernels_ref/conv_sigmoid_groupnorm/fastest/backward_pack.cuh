// ---- backward: a whole image on the chip ----

// What backward's sums are made of, for every channel of y: 72 sums of gq times x, then the sums of gq, of gy, of
// gy * sh and, in the tf32 class, of gq times x's lower halves, convolved. A block leaves a row of them.
constexpr int OF_Q = IN * TAPS, OF_GY = OF_Q + 1, OF_GY_SH = OF_Q + 2, OF_LOW = OF_Q + 3, SUMS = 3 * WARP;
static_assert(SUMS > OF_LOW, "lanes for every sum of a channel");

// The convolution's weights as the second factors of mma, in halves. Lane 4 g + t has channel g of the result, and 2 t
// and 2 t + 1 (and + 8) of what is summed over.
struct Packed {
    uint4 conv[4][2][2][WARP];  // [step][16 channels of y][upper, lower]: both of 8 channels, then both of 8 more
    uint4 conv_last[2][WARP];  // [upper, lower]: 4 times 8 channels of y
    uint4 gx[3][2][3][WARP];  // [kx][16 channels of y][ky], times scale: both upper, then both lower
    float2 line[OUT];  // factor and offset from a channel's sum to the exponent of its sigmoid
    int conv_one[OUT];  // 2^one: what a channel's weights count in
    int conv_fits, gx_fits;  // whether halves have room for them
    int gx_one;
    float reach;  // the largest weight times scale
};

// One block.
__global__ void __launch_bounds__(THREADS)
    pack_kernel(const float* weight, const float* conv_bias, const float* bias, const float* scale, Packed* packed) {
#ifdef TENSOR_CORES
    __shared__ float largest[OUT];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    for (int o = warp; o < OUT; o += WARPS) {
        float most = 0.0f;
        for (int k = lane; k < IN * TAPS; k += WARP) most = fmaxf(most, fabsf(weight[o * IN * TAPS + k]));
        most = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(most)));
        if (lane == 0) largest[o] = most;
    }
    __syncthreads();  // all channels' are there
    float most = 0.0f;
    bool conv_fits = true;
    for (int o = 0; o < OUT; ++o) {
        int one;
        most = fmaxf(most, largest[o] * fabsf(scale[o]));
        conv_fits = fits_halves(largest[o], one) && conv_fits;
    }
    int gx_one;
    const bool gx_fits = fits_halves(most, gx_one);
    if (threadIdx.x == 0) {
        packed->conv_fits = conv_fits;
        packed->gx_fits = gx_fits;
        packed->gx_one = gx_one;
        packed->reach = most;
    }
    if (threadIdx.x < OUT) {
        const int o = threadIdx.x;
        int one;
        const bool fits = fits_halves(largest[o], one);
        const float factor = -1.4426950408889634f * scale[o];  // 2^(log2(e) v) = e^v
        packed->line[o] = make_float2(fits ? factor * power_of_two(one) : 0.0f, (conv_bias[o] + bias[o]) * factor);
        packed->conv_one[o] = one;
    }
    // The pair of channels 2 t, 2 t + 1 of x in a channel of y, at a tap.
    const auto pair = [&](int o, int tap, unsigned& high, unsigned& low) {
        int one;
        const float unit = fits_halves(largest[o], one) ? power_of_two(-one) : 0.0f;
        const float* w = weight + (o * IN + 2 * t) * TAPS + tap;
        split(w[0] * unit, w[TAPS] * unit, high, low);
    };
    for (int i = warp; i < 4 * 2; i += WARPS) {
        const int s = i / 2, o = i % 2 * 16 + g, a = s < 3 ? s : 6, b = s < 3 ? s + 3 : 7;
        uint4 high, low;
        pair(o, a, high.x, low.x);
        pair(o, b, high.y, low.y);
        pair(o + 8, a, high.z, low.z);
        pair(o + 8, b, high.w, low.w);
        packed->conv[s][i % 2][0][lane] = high;
        packed->conv[s][i % 2][1][lane] = low;
    }
    if (warp == 0) {
        uint4 high, low;
        pair(g, 8, high.x, low.x);
        pair(g + 8, 8, high.y, low.y);
        pair(g + 16, 8, high.z, low.z);
        pair(g + 24, 8, high.w, low.w);
        packed->conv_last[0][lane] = high;
        packed->conv_last[1][lane] = low;
    }
    const float unit = gx_fits ? power_of_two(-gx_one) : 0.0f;
    for (int i = warp; i < 3 * 2 * 3; i += WARPS) {
        const int kx = i / 6, first = i / 3 % 2 * 16 + 2 * t, tap = i % 3 * 3 + kx;
        const auto value = [&](int o) { return weight[(o * IN + g) * TAPS + tap] * scale[o] * unit; };
        uint4 both;
        split(value(first), value(first + 1), both.x, both.z);
        split(value(first + 8), value(first + 9), both.y, both.w);
        packed->gx[kx][i / 3 % 2][i % 3][lane] = both;
    }
#endif
}
