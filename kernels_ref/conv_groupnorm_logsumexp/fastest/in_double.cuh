// ---- what halves are not good enough for: small numbers beside very large ones, in double ----

// One element of the convolution without its bias. at: its window's first pixel; weight: its channel's. Not inlined: it
// is seldom needed, and registers are scarce.
__device__ __noinline__ double sum_in_double(const float* at, const float* weight, int C, int H, int W) {
    double sum = 0.0;
#pragma unroll 1
    for (int i = 0; i < C * 9; ++i) {
        const int64_t tap = ((int64_t)(i / 9) * H + i % 9 / 3) * W + i % 3;
        sum = fma((double)__ldg(at + tap), (double)__ldg(weight + i), sum);
    }
    return sum;
}

// The parameters of all channels, and each group's mean and rstd (N, groups).
struct Parameters {
    const float *weight, *bias, *gamma, *beta;
    const float2* statistics;
    int channels_a_group;
};

// One channel's part in a pixel: its normalised value without weight and bias, tanh with them, and z.
struct Element {
    double xh, tanh, z;
};

// A pixel's channels lane and lane + WARP; returns the logsumexp of all. A whole warp must call it.
__device__ __noinline__ double pixel_in_double(const float* x, Parameters p, int n, int row, int column, Shape s,
                                               Element (&of)[2]) {
    const float* at = x + ((int64_t)n * s.C * s.H + row) * s.W + column;
    double top = -INFINITY, sum = 0.0;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        const int c = threadIdx.x % WARP + k * WARP;
        of[k] = {0.0, 0.0, -INFINITY};  // a channel that there is not adds nothing
        if (c < s.OC) {
            const float2 of_group = p.statistics[(int64_t)n * (s.OC / p.channels_a_group) + c / p.channels_a_group];
            const double v = sum_in_double(at, p.weight + (int64_t)c * s.C * 9, s.C, s.H, s.W) + p.bias[c];
            const double xh = (v - of_group.x) * of_group.y, t = tanh(xh * p.gamma[c] + p.beta[c]);
            of[k] = {xh, t, v + t * (t + 3) / 6};
        }
        top = fmax(top, of[k].z);
    }
#pragma unroll
    for (int o = 1; o < WARP; o *= 2) top = fmax(top, __shfl_xor_sync(ALL_LANES, top, o));
#pragma unroll
    for (int k = 0; k < 2; ++k) sum += exp(of[k].z - top);
#pragma unroll
    for (int o = 1; o < WARP; o *= 2) sum += __shfl_xor_sync(ALL_LANES, sum, o);
    return top + log(sum);
}

// y of a tile of so many rows. All threads must call it.
__device__ __noinline__ void tile_in_double(const float* x, Parameters p, float* y, int n, int y0, int x0, int rows,
                                            Shape s) {
    for (int i = threadIdx.x / WARP; i < rows * WIDE; i += blockDim.x / WARP) {
        const int row = y0 + i / WIDE, column = x0 + i % WIDE;
        if (row >= s.OH || column >= s.OW) continue;
        Element of[2];
        const double v = pixel_in_double(x, p, n, row, column, s, of);
        if (threadIdx.x % WARP == 0) y[((int64_t)n * s.OH + row) * s.OW + column] = v;
    }
}
