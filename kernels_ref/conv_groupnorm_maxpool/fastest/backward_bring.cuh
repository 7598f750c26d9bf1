#ifdef TENSOR_CORES

// Both kinds of weights into shared memory, scaled by powers of two; returns the exponent of those for gx. In 16
// channels row g of the product for v is channel 2 g, row g + 8 the next one: so a lane has two channels side by side.
__device__ __forceinline__ int bring_weights(Strip& strip, const float* weight, const float* gamma, const float* factor,
                                             const Shape& s) {
    const int terms = s.C * TAPS;
    {
        const int c = threadIdx.x / 4;
        static_assert(G_THREADS == CHUNK * 4, "four threads a channel");
        float largest = 0.0f, sum = 0.0f, whole = 0.0f;
        for (int k = threadIdx.x % 4; c < s.OC && k < terms; k += 4) {
            const float v = fabsf(weight[c * terms + k]);
            if (v < INFINITY) largest = fmaxf(largest, v);
            sum += v;
            whole += (float)as_factor(weight[c * terms + k]);
        }
        sum += __shfl_xor_sync(ALL_LANES, sum, 1);
        sum += __shfl_xor_sync(ALL_LANES, sum, 2);
        whole += __shfl_xor_sync(ALL_LANES, whole, 1);
        whole += __shfl_xor_sync(ALL_LANES, whole, 2);
        largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 2));
        if (threadIdx.x % 4 == 0) {  // where the factors to come are negative, the smallest v gives the maximum
            const bool minus = c < s.OC && (gamma[c] < 0.0f) != (factor[c] < 0.0f);
            strip.up[c] = power_of_two(exponent_for(largest)) * (minus ? -1.0f : 1.0f);
            strip.largest[c] = largest;
            strip.magnitude[c] = sum;
            strip.whole[c] = whole;
        }
    }
    __syncthreads();  // each channel's scale is known
    float largest = 0.0f;
    for (int c = 0; c < CHUNK; ++c) largest = fmaxf(largest, strip.largest[c]);
    const int exponent = exponent_for(largest);
    const float up_of_x = power_of_two(exponent);
    const auto at = [&](int c, int k, int tap) {
        return c < s.OC && k < s.C && tap < TAPS ? weight[c * terms + k * TAPS + tap] : 0.0f;
    };
    for (int i = threadIdx.x; i < CHUNK / 16 * 5 * WARP; i += G_THREADS) {
        const int m = i / (5 * WARP), step = i / WARP % 5, g = i % WARP / 4, t = i % 4;
        uint32_t high[4], low[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const int c = m * 16 + 2 * g + q % 2;
            const int tap = step < 3 ? step * 3 + q / 2 : step == 3 ? 2 + q / 2 * 3 : q < 2 ? 8 : TAPS;
            const float a = at(c, 2 * t, tap) * strip.up[c], b = at(c, 2 * t + 1, tap) * strip.up[c];
            high[q] = halves(a, b);
            low[q] = rest(high[q], a, b);
        }
        strip.weight[0][m][step][i % WARP] = {high[0], high[1], high[2], high[3]};
        if constexpr (SPLIT == 3) strip.weight[HALVES - 1][m][step][i % WARP] = {low[0], low[1], low[2], low[3]};
    }
    for (int i = threadIdx.x; i < TAPS * (CHUNK / 16) * WARP; i += G_THREADS) {
        const int tap = i / (CHUNK / 16 * WARP), m = i / WARP % (CHUNK / 16), g = i % WARP / 4, t = i % 4;
        uint32_t high[2], low[2];
#pragma unroll
        for (int q = 0; q < 2; ++q) {
            const int c = m * 16 + 8 * q + 2 * t;
            const float a = at(c, g, tap) * up_of_x, b = at(c + 1, g, tap) * up_of_x;
            high[q] = halves(a, b);
            low[q] = rest(high[q], a, b);
        }
        strip.weight_of_x[0][tap][m][i % WARP] = {high[0], high[1]};
        if constexpr (SPLIT == 3) strip.weight_of_x[HALVES - 1][tap][m][i % WARP] = {low[0], low[1]};
    }
    return exponent;
}

// Starts to bring the rows of x that a strip needs; beyond the image come zeros.
__device__ __forceinline__ void bring_x(Strip& strip, const float* image, const float* x, int y0, int x0, bool vector,
                                        const Shape& s) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(strip.raw);
    for (int u = warp; u < s.C * X_ROWS; u += G_WARPS) {
        const int row = y0 + u % X_ROWS;
        const float* from = image + ((int64_t)(u / X_ROWS) * s.H + row) * s.W + x0;
        if (vector) {
            for (int c = lane * 4; c < (s.W > WIDE ? RAW : WIDE); c += WARP * 4) {  // else zeros are there
                const bool in = row < s.H && x0 + c < s.W;
                copy16(to + (u * RAW + c) * 4, in ? from + c : x, in);
            }
        } else {
            for (int c = lane; c < COLUMNS; c += WARP) {
                const bool in = row < s.H && x0 + c < s.W;
                copy4(to + (u * RAW + c) * 4, in ? from + c : x, in);
            }
        }
    }
}

// raw, or the image itself, -> x, in halves.
__device__ __forceinline__ void halve_x(Strip& strip, const float* image, int y0, int x0, float up, float off,
                                        const Shape& s) {
    const auto pixel = [&](int row, int column) {
        const int i = row * COLUMNS + column;
        float v[IN];
        if constexpr (AHEAD) {
            const float* at = strip.raw + row * RAW + column;
#pragma unroll
            for (int k = 0; k < IN; ++k) v[k] = fmaf(at[k * X_ROWS * RAW], up, off);
        } else {
            const int channels = y0 + row < s.H && x0 + column < s.W ? s.C : 0;
            int at = (y0 + row) * s.W + x0 + column;
#pragma unroll
            for (int k = 0; k < IN; ++k, at += s.H * s.W) v[k] = k < channels ? fmaf(__ldg(image + at), up, off) : 0.0f;
        }
        const uint4 high = {halves(v[0], v[1]), halves(v[2], v[3]), halves(v[4], v[5]), halves(v[6], v[7])};
        strip.x[i] = high;
        if constexpr (BOTH) {
            strip.x[X_PIXELS + i] = {rest(high.x, v[0], v[1]), rest(high.y, v[2], v[3]), rest(high.z, v[4], v[5]),
                                     rest(high.w, v[6], v[7])};
        }
    };
    static_assert(G_THREADS % WIDE == 0 && X_ROWS % (G_THREADS / WIDE) == 0, "a thread has one column");
#pragma unroll
    for (int row = 0; row < X_ROWS; row += G_THREADS / WIDE) {
        pixel(row + threadIdx.x / WIDE, threadIdx.x % WIDE);
    }
    if (threadIdx.x < 2 * X_ROWS) pixel(threadIdx.x / 2, WIDE + threadIdx.x % 2);
}
#endif
