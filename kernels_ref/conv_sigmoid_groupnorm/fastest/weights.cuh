#ifdef TENSOR_CORES

// All weights, spread over a warp's lanes as mma wants them, for as long as the warp lives. Lane 4 g + t has channels
// g + 8 i of y and 2 t, 2 t + 1 of x. Four steps take two taps each, (0, 3), (1, 4), (2, 5) and (6, 7); a short one, 8.
struct Weights {
    unsigned high[4][TALL][4], last_high[TALL][2];
    unsigned low[SPLIT == 3 ? 4 : 1][TALL][4], last_low[TALL][2];
    bool fit;  // halves have room for them

    // PLAIN: line is for the sum itself, not for its sigmoid's exponent. tells: whether this warp writes it.
    template <bool PLAIN>
    __device__ __forceinline__ void load(const float* weight, const float* conv_bias, const float* bias,
                                         const float* scale, int first, float2* line, bool tells) {
        const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
        fit = true;
#pragma unroll
        for (int i = 0; i < 2 * TALL; ++i) {
            const int o = first + g + 8 * i;
            float w[2][TAPS], largest = 0.0f;
#pragma unroll
            for (int k = 0; k < 2 * TAPS; ++k) {
                w[k / TAPS][k % TAPS] = weight[(o * IN + 2 * t) * TAPS + k];
                largest = fmaxf(largest, fabsf(w[k / TAPS][k % TAPS]));
            }
            largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 1));
            largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 2));
            int one;
            const bool fits = fits_halves(largest, one);
            fit = fit && fits;
            const float factor = PLAIN ? 1.0f : -1.4426950408889634f * scale[o];  // 2^(log2(e) v) = e^v
            if (tells && t == 0) {
                line[o] = make_float2(fits ? factor * power_of_two(one) : 0.0f, (conv_bias[o] + bias[o]) * factor);
            }
            const float unit = fits ? power_of_two(-one) : 0.0f;
            unsigned h[TAPS], l[TAPS];
#pragma unroll
            for (int k = 0; k < TAPS; ++k) split(w[0][k] * unit, w[1][k] * unit, h[k], l[k]);
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                const int a = s < 3 ? s : 6, b = s < 3 ? s + 3 : 7;
                high[s][i / 2][i % 2] = h[a];
                high[s][i / 2][2 + i % 2] = h[b];
                if (SPLIT == 3) {
                    low[s][i / 2][i % 2] = l[a];
                    low[s][i / 2][2 + i % 2] = l[b];
                }
            }
            last_high[i / 2][i % 2] = h[8];
            last_low[i / 2][i % 2] = l[8];
        }
        fit = __all_sync(ALL_LANES, fit);
    }
};
#endif
