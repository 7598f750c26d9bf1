#ifdef TENSOR_CORES

#if !BACKWARD
// The sums of a warp's channels at 8 * WIDE pixels. at: this lane's rows of the matrices for two taps below each other,
// two beside each other, and the last tap. below: bytes from there to the lower halves. Tensor cores cut their sums
// where float32 rounds, always towards 0: so all small products come before any large one, and the large ones are two
// sums, of which each is cut less often.
__device__ __forceinline__ void convolve(const Weights& w, const unsigned (&at)[3], int offset, int below,
                                         float (&sum)[TALL][WIDE][4]) {
    unsigned high[WIDE / 2][4];  // 8 pixels of both taps, then 8 more
    float large[TALL][WIDE][4];  // high times high of three steps
#pragma unroll
    for (int s = 0; s < 4; ++s) {
#else
// The sums of a warp's channels at 8 * WIDE pixels. at: this lane's rows of the matrices for two taps below each other,
// two beside each other, and the last tap.
__device__ __forceinline__ void convolve(const Weights& w, const unsigned (&at)[3], int offset,
                                         float (&sum)[TALL][WIDE][4]) {
#pragma unroll
    for (int s = 0; s < 4; ++s) {
        unsigned high[WIDE / 2][4];  // 8 pixels of both taps, then 8 more
#endif
        const unsigned from = (s < 3 ? at[0] + s * 16 : at[1]) + offset;
#pragma unroll
        for (int i = 0; i < WIDE / 2; ++i) load_matrices(high[i], from + i * 256);
        if constexpr (SPLIT == 3) {  // low times low is too small to count
            unsigned low[WIDE / 2][4];
#pragma unroll
#if !BACKWARD
            for (int i = 0; i < WIDE / 2; ++i) load_matrices(low[i], from + i * 256 + below);
#else
            for (int i = 0; i < WIDE / 2; ++i) load_matrices(low[i], from + i * 256 + LOW);
#endif
#pragma unroll
            for (int i = 0; i < TALL * WIDE; ++i) {
                const int m = i / WIDE, n = i % WIDE;
                if (s == 0)
                    multiply_first(sum[m][n], w.low[s][m], high[n / 2][n % 2 * 2], high[n / 2][n % 2 * 2 + 1]);
                else
                    multiply(sum[m][n], w.low[s][m], high[n / 2][n % 2 * 2], high[n / 2][n % 2 * 2 + 1]);
            }
#pragma unroll
            for (int i = 0; i < TALL * WIDE; ++i) {
                const int m = i / WIDE, n = i % WIDE;
                multiply(sum[m][n], w.high[s][m], low[n / 2][n % 2 * 2], low[n / 2][n % 2 * 2 + 1]);
            }
        }
#pragma unroll
        for (int i = 0; i < TALL * WIDE; ++i) {
            const int m = i / WIDE, n = i % WIDE;
            const unsigned x0 = high[n / 2][n % 2 * 2], x1 = high[n / 2][n % 2 * 2 + 1];
#if !BACKWARD
            if (SPLIT == 3 && s == 3) continue;  // the last tap's small products come first
            float (&to)[4] = SPLIT == 3 ? large[m][n] : sum[m][n];
            if (s == 0)
                multiply_first(to, w.high[s][m], x0, x1);
            else
                multiply(to, w.high[s][m], x0, x1);
#else
            if (SPLIT == 1 && s == 0)
                multiply_first(sum[m][n], w.high[s][m], x0, x1);
            else
                multiply(sum[m][n], w.high[s][m], x0, x1);
#endif
        }
    }
    unsigned last[WIDE / 2][4];  // SPLIT == 3: 8 pixels' upper and lower halves, 8 more
#pragma unroll
    for (int i = 0; i < WIDE / 2; ++i) load_matrices(last[i], at[2] + offset + i * 256);
#if !BACKWARD
    if constexpr (SPLIT == 3) {
#pragma unroll
        for (int i = 0; i < TALL * WIDE; ++i) {  // low times high and high times low at once
            const int m = i / WIDE, n = i % WIDE;
            const unsigned both[4] = {w.last_low[m][0], w.last_low[m][1], w.last_high[m][0], w.last_high[m][1]};
            multiply(sum[m][n], both, last[n / 2][n % 2 * 2], last[n / 2][n % 2 * 2 + 1]);
        }
#pragma unroll
        for (int i = 0; i < TALL * WIDE; ++i) {
            const int m = i / WIDE, n = i % WIDE;
            multiply(sum[m][n], w.high[3][m], high[n / 2][n % 2 * 2], high[n / 2][n % 2 * 2 + 1]);
        }
    }
#pragma unroll
    for (int i = 0; i < TALL * WIDE; ++i) {
        const int m = i / WIDE, n = i % WIDE;
        multiply(sum[m][n], w.last_high[m], last[n / 2][SPLIT == 3 ? n % 2 * 2 : n % 2]);
    }
    if (SPLIT == 3) {
#pragma unroll
        for (int i = 0; i < TALL * WIDE * 4; ++i) {
            const int m = i / 4 / WIDE, n = i / 4 % WIDE;
            sum[m][n][i % 4] += large[m][n][i % 4];
#else
#pragma unroll
    for (int product = SPLIT - 1; product >= 0; --product) {
#pragma unroll
        for (int i = 0; i < TALL * WIDE; ++i) {  // low times high and high times low at once
            const int m = i / WIDE, n = i % WIDE;
            const unsigned x = last[n / 2][(product == 1 ? 2 : 0) + n % 2];
            multiply(sum[m][n], product == 2 ? w.last_low[m] : w.last_high[m], x);
#endif
        }
    }
}

#if BACKWARD
// The same, but each tap's sums are added in float32: tensor cores cut their sums where float32 rounds, and errors of
// one sign add up over an image.
__device__ __forceinline__ void convolve_exactly(const Weights& w, const unsigned (&at)[3], int offset,
                                                 float (&sum)[TALL][WIDE][4]) {
#pragma unroll
    for (int i = 0; i < TALL * WIDE * 4; ++i) sum[i / 4 / WIDE][i / 4 % WIDE][i % 4] = 0.0f;
#pragma unroll
    for (int s = 0; s < 5; ++s) {
        const unsigned from = (s < 3 ? at[0] + s * 16 : s == 3 ? at[1] : at[2]) + offset;
        unsigned high[WIDE / 2][4], low[WIDE / 2][4];  // the last tap: upper, then lower halves, both in `high`
#pragma unroll
        for (int i = 0; i < WIDE / 2; ++i) {
            load_matrices(high[i], from + i * 256);
            if (s < 4) load_matrices(low[i], from + i * 256 + LOW);
        }
        float part[TALL * WIDE][4] = {};
#pragma unroll
        for (int product = 0; product < 3; ++product) {  // the small ones first
#pragma unroll
            for (int i = 0; i < TALL * WIDE; ++i) {
                const int m = i / WIDE, n = i % WIDE / 2, k = i % WIDE % 2;
                const unsigned (&x)[4] = product == 1 && s < 4 ? low[n] : high[n];
                if (s < 4)
                    multiply(part[i], product == 0 ? w.low[s][m] : w.high[s][m], x[2 * k], x[2 * k + 1]);
                else
                    multiply(part[i], product == 0 ? w.last_low[m] : w.last_high[m], x[(product == 1 ? 2 : 0) + k]);
            }
        }
#pragma unroll
        for (int i = 0; i < TALL * WIDE * 4; ++i) sum[i / 4 / WIDE][i / 4 % WIDE][i % 4] += part[i / 4][i % 4];
    }
}
#endif

// The same sums in double from global memory, for outliers, infinities and what else halves have no room for.
__device__ __noinline__ void convolve_slowly(const float* x, const float* weight, int H, int W, int oy, int ox,
                                             float* sums) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll 1
    for (int i = 0; i < TALL * WIDE * 4; ++i) {  // as in sum[TALL][WIDE][4]
        const float* w = weight + (i / 4 / WIDE * 16 + i % 4 / 2 * 8 + g) * IN * TAPS;
        const int column = ox + i / 4 % WIDE * 8 + 2 * t + i % 2;
        double sum = 0.0;
#pragma unroll 1
        for (int k = 0; k < IN * TAPS; ++k) {
            const int row = min(oy + k % TAPS / 3, H - 1);
            sum += (double)x[((size_t)(k / TAPS) * H + row) * W + min(column + k % 3, W - 1)] * w[k];
        }
        sums[i] = sum;
    }
}

// A warp's segment in its channels, `first` and on -> their sigmoids at `to`, rows of pixels in steps of S_CHANNEL a
// channel; `count` of them exist. MOMENTS: theirs, too -> shared.moments[.][segment]. VALUES: the sums, no sigmoids.
// fits, one: Column::store's. The pixels begin at (row, column) of the tile, (oy, ox) of y.
enum { SIGMOIDS, MOMENTS, VALUES };

template <int MAKE>
__device__ __forceinline__ void make_segment(const Weights& w, Shared& shared, bool fits, int one, int first,
                                             int segment, int row, int column, int count, float* to, const float* x,
                                             const float* weight, const float* scale, const Shape& s, int oy, int ox) {
    const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4, matrix = lane / 8;
    const unsigned tile = (unsigned)__cvta_generic_to_shared(shared.x) + (row * X_ROW + column) * 16;
    const int pixel = lane % 8 + matrix / 2 * 8;  // matrices: 8 pixels at both taps, then 8 more
#if !BACKWARD
    const int last = 2 * X_ROW + 2 + lane % 8 + (SPLIT == 3 ? matrix / 2 : matrix % 2) * 8;
    const unsigned at[3] = {tile + (pixel + matrix % 2 * X_ROW) * 16, tile + (2 * X_ROW + pixel + matrix % 2) * 16,
                            tile + last * 16 + (SPLIT == 3 ? matrix % 2 * LOW : 0)};
#else
    const int last = 2 * X_ROW + 2 + lane % 8 + matrix % 2 * 8;
    const unsigned at[3] = {tile + (pixel + matrix % 2 * X_ROW) * 16, tile + (2 * X_ROW + pixel + matrix % 2) * 16,
                            tile + last * 16 + (SPLIT == 3 ? matrix / 2 * LOW : 0)};
#endif
    const bool halves = fits && w.fit;
    float2 line[2 * TALL];
#pragma unroll
    for (int i = 0; i < 2 * TALL; ++i) {
        line[i] = shared.line[first + g + 8 * i];
        const float factor = MAKE == VALUES ? 1.0f : -1.4426950408889634f * scale[first + g + 8 * i];
        line[i].x = halves ? line[i].x * power_of_two(one) : factor;
    }
    to += (first + g) * S_CHANNEL + 2 * t;
    // About the segment's first pixel: sums of squares about 0 have no correct digit where the mean is large.
    float shift[2 * TALL], deviations[2 * TALL], squares[2 * TALL];
#pragma unroll
    for (int i = 0; i < 2 * TALL; ++i) deviations[i] = squares[i] = 0.0f;
#if !BACKWARD
#pragma unroll UNROLL
    for (int j = 0; j < SEGMENT; j += 8 * WIDE) {
        float sum[TALL][WIDE][4];  // of channels 16 m + g (and + 8, last two) at pixels 8 n + 2 t (and + 1)
        if (halves) {
            convolve(w, at, j * 16, LOW, sum);
#else
#pragma unroll 1
    for (int j = 0; j < SEGMENT; j += 8 * WIDE) {
        float sum[TALL][WIDE][4];  // of channels 16 m + g (and + 8, last two) at pixels 8 n + 2 t (and + 1)
        if (halves) {
            if constexpr (SPLIT == 3)
                convolve_exactly(w, at, j * 16, sum);
            else
                convolve(w, at, j * 16, sum);
#endif
        } else {
            float sums[TALL * WIDE * 4];
            convolve_slowly(x, weight + first * IN * TAPS, s.H, s.W, oy, ox + j, sums);
#pragma unroll
            for (int i = 0; i < TALL * WIDE * 4; ++i) sum[i / 4 / WIDE][i / 4 % WIDE][i % 4] = sums[i];
        }
#pragma unroll
        for (int i = 0; i < TALL * WIDE * 4; ++i) {
            float& v = sum[i / 4 / WIDE][i / 4 % WIDE][i % 4];
            const float2 k = line[i / 4 / WIDE * 2 + i % 4 / 2];
            v = MAKE == VALUES ? v * k.x + k.y : sigmoid_of_exponent(v * k.x + k.y);
        }
        if (MAKE == MOMENTS && j == 0) {
#pragma unroll
            for (int i = 0; i < 2 * TALL; ++i) shift[i] = __shfl_sync(ALL_LANES, sum[i / 2][0][i % 2 * 2], lane & ~3);
        }
        if (j + 8 * WIDE <= count) {
#pragma unroll
            for (int i = 0; i < TALL * WIDE * 2; ++i) {
                const int m = i / WIDE / 2, h = i / WIDE % 2, n = i % WIDE;
                const float a = sum[m][n][2 * h], b = sum[m][n][2 * h + 1];
                *reinterpret_cast<float2*>(to + (16 * m + 8 * h) * S_CHANNEL + j + 8 * n) = make_float2(a, b);
                if (MAKE == MOMENTS) {
                    const float e = a - shift[2 * m + h], f = b - shift[2 * m + h];
                    deviations[2 * m + h] += e + f;
                    squares[2 * m + h] += e * e;
                    squares[2 * m + h] += f * f;
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < TALL * WIDE * 2; ++i) {
                const int m = i / WIDE / 2, h = i / WIDE % 2, n = i % WIDE, p = j + 8 * n + 2 * t;
                const float a = sum[m][n][2 * h], b = sum[m][n][2 * h + 1];
                float* pair = to + (16 * m + 8 * h) * S_CHANNEL + j + 8 * n;
                // the one after the last may be written too, into a place that nobody reads
                if (p < count) *reinterpret_cast<float2*>(pair) = make_float2(a, b);
                if (MAKE == MOMENTS) {
                    const float e = p < count ? a - shift[2 * m + h] : 0.0f;
                    const float f = p + 1 < count ? b - shift[2 * m + h] : 0.0f;
                    deviations[2 * m + h] += e + f;
                    squares[2 * m + h] += e * e;
                    squares[2 * m + h] += f * f;
                }
            }
        }
    }
    if (MAKE == MOMENTS) {
        const float part = 1.0f / min(count, SEGMENT);
#pragma unroll
        for (int i = 0; i < 2 * TALL; ++i) {
#pragma unroll
            for (int offset = 1; offset < 4; offset *= 2) {
                deviations[i] += __shfl_xor_sync(ALL_LANES, deviations[i], offset);
                squares[i] += __shfl_xor_sync(ALL_LANES, squares[i], offset);
            }
            const float off = deviations[i] * part;
            const float2 moments = make_float2(shift[i] + off, squares[i] - deviations[i] * off);
            if (t == 0) shared.moments[first + g + 8 * i][segment] = moments;
        }
    }
}
#endif
