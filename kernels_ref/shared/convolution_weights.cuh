#ifdef TENSOR_CORES

// The weights of a warp's MT * 16 channels, in registers as mma has them. A register holds two channels of x. Terms are
// taken two taps at a time: 0 and 1, 3 and 4, 6 and 7 (pixels at the shifts 0 and 1 of a row), then of the third column
// 2 and 5 with 8 alone, or 5 and 8 with 2 alone: an even row of pixels takes the former, an odd one the latter, so that
// the same registers of pixels pair up for all rows.
template <int SPLIT, int MT>
struct Weights {
    static constexpr int TERMS = IN * 9, PITCH = TERMS + 1;
    uint32_t high[MT][5][4], low[SPLIT == 3 ? MT : 1][5][4];

    // Each channel is scaled by a power of two, and negated where `gamma` (of the normalisation) and `factor` have
    // different signs. unscale, bias_scaled (CHUNK, shared): what takes that back; the bias so scaled. `stage`: CHUNK *
    // PITCH floats of shared memory. All threads must call it; it ends with a barrier.
    __device__ __forceinline__ void load(const float* weight, const float* bias, const float* gamma,
                                         const float* factor, const Shape& s, int first, int local, float* stage,
#if CONV_GROUPNORM_LOGSUMEXP
                                         float* unscale, float* bias_scaled,
                                         int* lowest)  // lowest (shared): lowest_for all weights
#else
                                         float* unscale, float* bias_scaled)
#endif
    {
        const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4, terms = s.C * 9, channels = min(CHUNK, s.OC - first);
        weight += (int64_t)first * terms;
#if CONV_GROUPNORM_LOGSUMEXP
        if (threadIdx.x == 0) *lowest = lowest_for(0.0f);
#endif
        for (int i = threadIdx.x; i < CHUNK * TERMS; i += blockDim.x) {
            const int c = i / TERMS, k = i % TERMS;
            stage[c * PITCH + k] = c < channels && k < terms ? weight[c * terms + k] : 0.0f;
        }
        __syncthreads();  // the weights are there
#if CONV_GROUPNORM_LOGSUMEXP
        float most = 0.0f;
#endif
#pragma unroll
        for (int m = 0; m < MT; ++m) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int c = local + m * 16 + h * 8 + g;
                const float* at = stage + c * PITCH + 2 * 9 * t;
                float largest = 0.0f;
#pragma unroll
                for (int k = 0; k < 18; ++k) {
                    const float v = fabsf(at[k]);
                    if (v < INFINITY) largest = fmaxf(largest, v);
                }
                largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 1));
                largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 2));
#if CONV_GROUPNORM_LOGSUMEXP
                most = fmaxf(most, largest);
#endif
                const int e = exponent_for(largest);
                const bool minus = gamma && c < channels && (gamma[first + c] < 0.0f) != (factor[first + c] < 0.0f);
                const float sign = minus ? -1.0f : 1.0f, up = power_of_two(e) * sign;
                if (t == 0 && threadIdx.x < CHUNK / 16 / MT * WARP) {  // the other warps have the same
                    unscale[c] = power_of_two(-e) * sign;
                    bias_scaled[c] = c < channels ? bias[first + c] * up : 0.0f;
                }
#pragma unroll
                for (int k = 0; k < 9; ++k) {
                    const float a = at[k] * up, b = at[9 + k] * up;
                    put(high[m], k, h, halves(a, b));
                    if constexpr (SPLIT == 3) put(low[m], k, h, rest(halves(a, b), a, b));
                }
            }
        }
#if CONV_GROUPNORM_LOGSUMEXP
        const unsigned of_warp = __reduce_max_sync(ALL_LANES, __float_as_uint(most));
        if (threadIdx.x % WARP == 0) atomicMax(lowest, lowest_for(__uint_as_float(of_warp)));
#endif
        __syncthreads();  // nobody reads the stage any more
    }

    __device__ __forceinline__ static void put(uint32_t (&a)[5][4], int k, int h, uint32_t v) {
        if (k % 3 < 2) a[k / 3][k % 3 * 2 + h] = v;
        if (k == 2 || k == 5) a[3][k / 3 * 2 + h] = v;
        if (k == 5 || k == 8) a[4][(k / 3 - 1) * 2 + h] = v;
    }
};
#endif
