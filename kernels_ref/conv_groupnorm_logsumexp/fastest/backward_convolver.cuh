#ifdef TENSOR_CORES
__device__ __forceinline__ void fragments_transposed(uint32_t (&a)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(at));
}
__device__ __forceinline__ void fragments(uint32_t (&a)[4], uint32_t at) { fragments(a[0], a[1], a[2], a[3], at); }

__device__ __forceinline__ float tanh_of(float v) {
    float r;
    asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

// 8 channels of one pixel as halves, and what these leave.
struct Octet {
    float v[IN];

    // Of the image at `from`; zeros beyond its edges.
    __device__ __forceinline__ void load(const float* from, const Shape& s, int row, int column) {
        const bool inside = row < s.H && column < s.W;
        const float* at = from + (int64_t)row * s.W + column;
#pragma unroll
        for (int c = 0; c < IN; ++c) v[c] = inside && c < s.C ? __ldg(at + (int64_t)c * s.H * s.W) : 0.0f;
    }
    template <bool LOW>
    __device__ __forceinline__ void store(uint4* high, uint4* low, float up) const {
        float f[IN];
#pragma unroll
        for (int c = 0; c < IN; ++c) f[c] = v[c] * up;
        const uint4 h = {halves(f[0], f[1]), halves(f[2], f[3]), halves(f[4], f[5]), halves(f[6], f[7])};
        *high = h;
        if (LOW) *low = {rest(h.x, f[0], f[1]), rest(h.y, f[2], f[3]), rest(h.z, f[4], f[5]), rest(h.w, f[6], f[7])};
    }
};

// A warp's 16 channels of the weights in registers, and v of 16 pixels from them: acc[j] has channels 8 j + 2 t (+ 1)
// of pixels g (and g + 8, last two). Not yet in it: the bias.
struct Convolver {
    uint32_t high[2][TAPS], low[SPLIT == 3 ? 2 : 1][TAPS];

    __device__ __forceinline__ void load(const Prepared* prepared, int share) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int k = 0; k < TAPS; ++k) {
                const uint2 v = __ldg(&prepared->conv[share][j][k][threadIdx.x % WARP]);
                high[j][k] = v.x;
                if (SPLIT == 3) low[j][k] = v.y;
            }
        }
    }

    // Sums are at most 72 * 2^20 by their scales; added to this, a float keeps multiples of 16 alone.
    static constexpr float FIRST_DIGITS = 3 << 26;

    __device__ __forceinline__ static void add(float (&sum)[4], float (&rest)[4], const float (&part)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float digits = (part[i] + FIRST_DIGITS) - FIRST_DIGITS;
            sum[i] += digits;  // exactly
            rest[i] += (part[i] - digits) + lost(part[i]);
        }
    }

    // For COUNT times 16 pixels: addresses of the first one in three rows of x. down: bytes from the upper halves to
    // the lower ones. Sums that do not wait for each other take turns, and each of the three products has sums of its
    // own: a tensor core's sum takes long, and it is cut off, while the additions at the end round. ROUNDED: those of
    // large products are added in float32, too, and `tail` is what is left of the sums beyond their last digits.
    template <bool ROUNDED, int COUNT>
    __device__ __forceinline__ void make(float (&acc)[COUNT][2][4], float (&tail)[COUNT][2][4],
                                         const uint32_t (&row)[COUNT][3], int down) const {
        const int lane = threadIdx.x % WARP;
        const uint32_t at = lane % 16 * 16, side = lane / 16;
        float rests[SPLIT == 3 ? COUNT : 1][2][2][4] = {};
#pragma unroll
        for (int i = 0; i < COUNT * 8; ++i) acc[i / 8][i / 4 % 2][i % 4] = 0.0f;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            uint32_t a[COUNT][4], low_a[COUNT][4];
#pragma unroll
            for (int q = 0; q < COUNT; ++q) {
                const uint32_t from = at + (k < 3 ? row[q][k] + side * 16 : (side ? row[q][1] : row[q][0]) + 32);
                fragments(a[q], from);
                if (SPLIT == 3) fragments(low_a[q], from + down);
            }
#pragma unroll
            for (int i = 0; i < COUNT * 2; ++i) {
                float part[4] = {};
                mma16(ROUNDED ? part : acc[i / 2][i % 2], a[i / 2], high[i % 2][2 * k], high[i % 2][2 * k + 1]);
                if (ROUNDED) add(acc[i / 2][i % 2], rests[SPLIT == 3 ? i / 2 : 0][0][i % 2], part);
            }
            if constexpr (SPLIT == 3) {
#pragma unroll
                for (int i = 0; i < COUNT * 2; ++i) {
                    mma16(rests[i / 2][0][i % 2], a[i / 2], low[i % 2][2 * k], low[i % 2][2 * k + 1]);
                    mma16(rests[i / 2][1][i % 2], low_a[i / 2], high[i % 2][2 * k], high[i % 2][2 * k + 1]);
                }
            }
        }
#pragma unroll
        for (int q = 0; q < COUNT; ++q) {
            uint32_t a[2], low_a[2];
            fragments(a[0], a[1], row[q][2] + at + 32);
            if (SPLIT == 3) fragments(low_a[0], low_a[1], row[q][2] + at + 32 + down);
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                float part[4] = {};
                mma8(ROUNDED ? part : acc[q][j], a[0], a[1], high[j][8]);
                if (ROUNDED) add(acc[q][j], rests[SPLIT == 3 ? q : 0][0][j], part);
                if constexpr (SPLIT == 3) {
                    mma8(rests[q][0][j], a[0], a[1], low[j][8]);
                    mma8(rests[q][1][j], low_a[0], low_a[1], high[j][8]);
                }
            }
        }
        if constexpr (SPLIT == 3) {
#pragma unroll
            for (int i = 0; i < COUNT * 8; ++i) {
                const float rest = rests[i / 8][0][i / 4 % 2][i % 4] + rests[i / 8][1][i / 4 % 2][i % 4];
                float& sum = acc[i / 8][i / 4 % 2][i % 4];
                const float before = sum;
                sum += rest;
                tail[i / 8][i / 4 % 2][i % 4] = ROUNDED ? rest - (sum - before) : 0.0f;
            }
        } else {
#pragma unroll
            for (int i = 0; i < COUNT * 8; ++i) tail[i / 8][i / 4 % 2][i % 4] = 0.0f;
        }
    }
};

// What a lane's channel needs, from a sum of products: u = sum * slope + intercept, twice the normalisation's result in
// units of ln 2; v + 2/3 = sum * unit + offset in the same; and linear = sum * rate + constant: in the first pass that
// is xh, the normalised value without weight and bias, in the last one what a and b take off gv.
struct Channel {
    float slope, intercept, unit, offset, rate, constant;
    float weight;  // rstd times the normalisation's weight
    float slope_rest, intercept_rest;  // what rounding left of both, for images that get more care

    // up: gv's scale
    template <bool LAST>
    __device__ __forceinline__ void load(int c, const float* conv_bias, const float* gamma, const float* beta,
                                         const float2* statistics, const float2* terms, const Prepared* prepared, int n,
                                         int channels_a_group, int OC, int exponent, float shift, float up, bool care) {
        slope = intercept = unit = rate = constant = weight = slope_rest = intercept_rest = 0.0f;
        offset = -1e30f;  // a channel that there is not has no part in the sum of exponentials
        if (c >= OC) return;
        const int64_t group = (int64_t)n * (OC / channels_a_group) + c / channels_a_group;
        const float2 m = __ldg(statistics + group);
        const float one = prepared->unscale[c] * power_of_two(-exponent), from = __ldg(conv_bias + c);
        weight = __ldg(gamma + c) * m.y;
        const bool coarse = COARSE && !care;
        const float factor = coarse ? 1.0f : 2 * LOG2E;
        slope = one * weight * factor;
        intercept = fmaf(from - m.x, weight, __ldg(beta + c)) * factor;
        unit = one * LOG2E;
        offset = (from - shift + (coarse ? 0.0f : 2.0f / 3)) * LOG2E;
        rate = one * m.y;
        constant = (from - m.x) * m.y;
        if (care) {
            constexpr double IN_LN_2 = 2 * 1.4426950408889634;
            const double steep = IN_LN_2 * __ldg(gamma + c), about = ((double)from - m.x) * m.y;
            const double a = steep * m.y * one, b = steep * about + IN_LN_2 * __ldg(beta + c);
            slope = (float)a;
            slope_rest = (float)(a - slope);
            intercept = (float)b;
            intercept_rest = (float)(b - intercept);
            constant = (float)about;
        }
        if (LAST) {
            const float2 ab = __ldg(terms + group);
            const float a = ab.x * m.y * up, b = ab.y * m.y * up;
            rate *= b;
            constant = fmaf(constant, b, a);
        }
    }
};

constexpr float EXTREME = 32768;  // float32 has 8 binary digits behind the point of such a value

// y with its last digit taken for a mark: whether more than one channel makes it, though values are extreme. Then
// theirs are summed in double.
__device__ __forceinline__ float marked(float y, bool mark) {
    return __uint_as_float((__float_as_uint(y) & ~1u) | mark);
}
__device__ __forceinline__ bool is_marked(float y) { return __float_as_uint(y) & 1; }

// y and gy of a pixel as `softmax` wants them. exp(z - y) is exp(z - shift) * exp(shift - y), which keeps the digits
// that the difference of two larger numbers would lose; but where one of these may not fit a float, y goes along.
__device__ __forceinline__ float2 of_pixel(float y, float gy, float shift, bool wide) {
    const float d = y - shift;
    if (!wide && fabsf(d) < 60.0f) return make_float2(0.0f, gy * expf(-d));
    return make_float2(marked(d * LOG2E, is_marked(y)), gy);
}

// Adds to a sum, and to `left` what rounding leaves of that.
__device__ __forceinline__ void add_with_rest(float& sum, float& left, float more) {
    const float before = sum;
    sum += more;
    const float added = sum - before;
    left += (before - (sum - added)) + (more - added);
}

// Both together; of infinity no rest is a number.
__device__ __forceinline__ float with_rest(float sum, float left) { return left == left ? sum + left : sum; }

// exp(u) as power() has it, but u = (sum + tail) * slope + intercept with all its digits behind the point, and without
// the errors of the special function, which are alike for numbers that are.
__device__ __forceinline__ float exp_rounded(float sum, float tail, const Channel& c) {
    const float u = fmaf(sum, c.slope, c.intercept);
    const float rest = fmaf(tail, c.slope, fmaf(sum, c.slope_rest, c.intercept_rest));
    const bool beyond = fabsf(u) > 30.0f;  // there tanh is 1 or -1
    const float whole = beyond ? copysignf(30.0f, u) : rintf(u), from = c.intercept - whole;
    const float f = fmaf(sum, c.slope, from) + (rest + (c.intercept - (from + whole)));
    const float v = beyond ? 0.0f : f * 0.6931471806f;
    float power = 1.0f / 5040;
    constexpr float TERMS[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
#pragma unroll
    for (int i = 0; i < 7; ++i) power = fmaf(power, v, TERMS[i]);
    return power * power_of_two((int)whole);
}

// Four elements' gz, and what gu is of it. With e = exp(u) and r = 1 / (1 + e), tanh is 1 - 2 r, its derivative
// 4 r (1 - r), and hardswish's (5 - 4 r) / 6. of: of_pixel of the first two elements and of the last two; element k is
// of channel k % 2. CAREFUL: sum[k] + tail[k] is its sum of products, and in_double(k) its v - shift.
template <bool CAREFUL, typename InDouble>
__device__ __forceinline__ void softmax(const float (&sum)[4], const Channel& c0, const Channel& c1,
                                        const float2 (&of)[2], float (&gz)[4], float (&part)[4], const float (&tail)[4],
                                        const InDouble& in_double) {
    if constexpr (COARSE && !CAREFUL) {  // 11 bits, too: tanh in one instruction
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const Channel& c = k % 2 ? c1 : c0;
            const float tanh = tanh_of(fmaf(sum[k], c.slope, c.intercept));
            const float z = fmaf(sum[k], c.unit, c.offset - of[k / 2].x);
            gz[k] = of[k / 2].y * power(fmaf(tanh, fmaf(tanh, LOG2E / 6, LOG2E / 2), z));
            part[k] = fmaf(-tanh, tanh, 1.0f) * fmaf(tanh, 1.0f / 3, 0.5f);
        }
    } else {
        float d[4], r[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {  // beyond 30 tanh is 1, and the product of four still a float
            const Channel& c = k % 2 ? c1 : c0;
            d[k] = 1.0f + (CAREFUL && SPLIT == 3 ? exp_rounded(sum[k], tail[k], c)
                                                 : power(lesser(fmaf(sum[k], c.slope, c.intercept), 30.0f)));
        }
        reciprocals(d, r);
#pragma unroll
        for (int k = 0; k < 4 && CAREFUL; ++k) r[k] = fmaf(r[k], fmaf(-d[k], r[k], 1.0f), r[k]);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const Channel& c = k % 2 ? c1 : c0;
            float z = CAREFUL ? fmaf(tail[k], c.unit, fmaf(sum[k], c.unit, -of[k / 2].x) + c.offset)
                              : fmaf(sum[k], c.unit, c.offset - of[k / 2].x);
            if (CAREFUL && SPLIT == 3 && is_marked(of[k / 2].x) && z > -30.0f) {
                z = (float)(in_double(k) * 1.4426950408889634 - of[k / 2].x) + LOG2E * 2 / 3;
            }
            gz[k] = of[k / 2].y * power(fmaf(r[k], fmaf(r[k], LOG2E * 2 / 3, -LOG2E * 5 / 3), z));
            part[k] = r[k] * fmaf(r[k], fmaf(r[k], 8.0f / 3, -6.0f), 10.0f / 3);
        }
    }
}
#endif
