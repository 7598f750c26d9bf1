#ifdef TENSOR_CORES

// Fragments of pixels: 6 rows of 8, at the shifts 0 and 1 side by side, and at shift 2, one row beside the next.
struct Pixels {
    uint32_t two[6][2], third[6];

    // pair: address of the pixel (row lane / 16, column lane % 8 + lane / 8 % 2); single: of (lane / 8, lane % 8 + 2)
    __device__ __forceinline__ void load(uint32_t pair, uint32_t single) {
#pragma unroll
        for (int r = 0; r < 6; r += 2) {
            fragments(two[r][0], two[r][1], two[r + 1][0], two[r + 1][1], pair + r * COLUMNS * 16);
        }
        fragments(third[0], third[1], third[2], third[3], single);
        fragments(third[4], third[5], single + 4 * COLUMNS * 16);
    }
};

// acc[row][m] += w[m] * pixels, for NR rows of 8 pixels; FROM: acc[row][m] = from[m] + w[m] * pixels
template <int MT, int NR, bool FROM>
__device__ __forceinline__ void product(const uint32_t (&w)[MT][5][4], const Pixels& b, const float (&from)[MT][4],
                                        float (&acc)[NR][MT][4]) {
#pragma unroll
    for (int k = 0; k < 3; ++k) {
#pragma unroll
        for (int r = 0; r < NR; ++r) {
#pragma unroll
            for (int m = 0; m < MT; ++m) {
                if (FROM && k == 0)
                    mma16_from(acc[r][m], from[m], w[m][k], b.two[r + k][0], b.two[r + k][1]);
                else
                    mma16(acc[r][m], w[m][k], b.two[r + k][0], b.two[r + k][1]);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < NR; ++r) {
#pragma unroll
        for (int m = 0; m < MT; ++m) mma16(acc[r][m], w[m][3 + r % 2], b.third[r + r % 2], b.third[r + r % 2 + 1]);
    }
#pragma unroll
    for (int r = 0; r < NR; ++r) {
#pragma unroll
        for (int m = 0; m < MT; ++m) {
            if (r % 2)
                mma8(acc[r][m], w[m][3][0], w[m][3][1], b.third[r]);
            else
                mma8(acc[r][m], w[m][4][2], w[m][4][3], b.third[r + 2]);
        }
    }
}

#if CONV_GROUPNORM_LOGSUMEXP && BACKWARD
// What a sum was before it was cut to a float, less that float, on average: half a unit in its last place.
__device__ __forceinline__ float lost(float cut) {
    return __uint_as_float(__float_as_uint(cut) & 0xff800000) * 0x1p-24f;
}

// acc[row][m] += from[m] + w[m] * pixels, for 4 rows of 8 pixels, where tensor cores sum 16 products at most, float32
// the rest; acc is small.
template <int MT>
__device__ __forceinline__ void product_rounded(const uint32_t (&w)[MT][5][4], const Pixels& b,
                                                const float (&from)[MT][4], float (&acc)[4][MT][4]) {
    const float zero[4] = {};
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int m = 0; m < MT; ++m) {
            float part[4], sum[4] = {};
#pragma unroll
            for (int k = 0; k < 5; ++k) {
                if (k < 3) mma16_from(part, zero, w[m][k], b.two[r + k][0], b.two[r + k][1]);
                if (k == 3) mma16_from(part, zero, w[m][3 + r % 2], b.third[r + r % 2], b.third[r + r % 2 + 1]);
                if (k == 4) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) part[i] = 0.0f;
                    if (r % 2)
                        mma8(part, w[m][3][0], w[m][3][1], b.third[r]);
                    else
                        mma8(part, w[m][4][2], w[m][4][3], b.third[r + 2]);
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    sum[i] += part[i];
                    acc[r][m][i] += lost(part[i]);
                }
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) acc[r][m][i] += sum[i] + from[m][i / 2 * 2];
        }
    }
}
#endif

// acc[row][m] = from[m] + weights * pixels, for 4 rows of 8 pixels. SPLIT 3: (high + low) * (high + low) without low *
// low; small products first, and `from` last, as tensor cores do not round a sum but cut it off.
template <int SPLIT, int MT, int LOW>
#if CONV_GROUPNORM_MAXPOOL || !BACKWARD
__device__ __forceinline__ void convolve(const Weights<SPLIT, MT>& w, uint32_t pair, uint32_t single,
                                         const float (&from)[MT][4], float (&acc)[4][MT][4]) {
#else
__device__ __forceinline__ void convolve(const Weights<SPLIT, MT>& w, uint32_t pair, uint32_t single,
                                         const float (&from)[MT][4], float (&acc)[4][MT][4], bool rounded = false) {
#endif
    Pixels high;
    high.load(pair, single);
    if constexpr (SPLIT == 3) {
        const float zero[MT][4] = {};
        Pixels low;
        low.load(pair + LOW, single + LOW);
        product<MT, 4, true>(w.low, high, zero, acc);
        product<MT, 4, false>(w.high, low, zero, acc);
#if CONV_GROUPNORM_LOGSUMEXP && BACKWARD
        if (rounded) {
            product_rounded<MT>(w.high, high, from, acc);
            return;
        }
#endif
        product<MT, 4, false>(w.high, high, zero, acc);
#pragma unroll
        for (int r = 0; r < 4; ++r) {
#pragma unroll
            for (int m = 0; m < MT; ++m) {
#pragma unroll
                for (int k = 0; k < 4; ++k) acc[r][m][k] += from[m][k / 2 * 2];
            }
        }
    } else {
        product<MT, 4, true>(w.high, high, from, acc);
    }
}

// Adds 4 rows of 8 pixels in a warp's channels to its sums. WINDOWS: leaves the largest of a window of 4 x 4, for a
// lane that of channel g + 8 * (t % 2) and of window t / 2.
template <int MT, bool WINDOWS>
__device__ __forceinline__ void add(const float (&acc)[4][MT][4], float (&sum)[MT][2], float (&squares)[MT][2],
                                    float (&best)[MT]) {
    const bool odd = threadIdx.x % 2;
#pragma unroll
    for (int m = 0; m < MT; ++m) {
        float top[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float left = 0.0f, right = 0.0f;
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const float a = acc[r][m][2 * h], b = acc[r][m][2 * h + 1];
                if constexpr (WINDOWS) top[h] = r ? fmaxf(top[h], fmaxf(a, b)) : fmaxf(a, b);
                left = r ? left + a : a;
                right = r ? right + b : b;
                squares[m][h] = fmaf(b, b, fmaf(a, a, squares[m][h]));
            }
            sum[m][h] += left + right;
        }
        if constexpr (WINDOWS) {  // neighbours have halves of one window in two channels; each takes one of these
            const float own = odd ? top[1] : top[0], other = odd ? top[0] : top[1];
            best[m] = fmaxf(own, __shfl_xor_sync(ALL_LANES, other, 1));
        }
    }
}
#endif
