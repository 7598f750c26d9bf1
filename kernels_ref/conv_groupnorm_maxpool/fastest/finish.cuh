// windows (N, OC, PH, tiles_x * 32), eight of them in statistics_kernel's order -> y (N, OC, PH, PW): ((v - mean) *
// rstd * gamma + beta) * factor, kept between low and high. One block a group of an image.
#if BACKWARD
// means (N, groups): mean and rstd; deviations (N, OC): each plane's sum of v - mean. The bounds keep exact_statistics
// from taking registers.
__global__ void __launch_bounds__(THREADS, 6)
    finish_kernel(float* windows, const Moments* moments, const float* gamma, const float* beta, const float* factor,
                  const float* x, const float* weight, const float* bias, const float* largest, float* y, float2* means,
                  float* deviations, int channels_a_group, int parts, int makers, Shape s, float eps, float low,
                  float high) {
#else
__global__ void __launch_bounds__(THREADS)
    finish_kernel(const float* windows, const Moments* moments, const float* gamma, const float* beta,
                  const float* factor, float* y, int channels_a_group, int parts, int makers, Shape s, float eps,
                  float low, float high) {
#endif
    constexpr int BATCH = 4, WARPS = THREADS / WARP;  // rows of windows that a warp reads before it writes
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, groups = s.OC / channels_a_group;
    const int PH = s.OH / 4, PW = s.OW / 4, pitch = s.tiles_x * (WIDE / 4);
    const int first = blockIdx.x % groups * channels_a_group;
    const int64_t plane = (int64_t)blockIdx.x * channels_a_group;
#if !BACKWARD
    const float2 of_group = statistics_of_group<THREADS>(moments + plane * parts, channels_a_group,
                                                         moments_count(s, blockIdx.x / groups, makers), parts, eps);
#else
    const int count = moments_count(s, blockIdx.x / groups, makers);
    float2 of_group;
    float usual;
    bool outlying;
    largest_of_image(largest, blockIdx.x / groups, s, usual, outlying);
    if (outlying) {
        of_group = exact_statistics(x + (int64_t)(blockIdx.x / groups) * s.C * s.H * s.W, weight + first * s.C * 9,
                                    bias + first, gamma + first, factor + first, windows + plane * (PH * pitch),
                                    deviations + plane, moments[plane * parts].mean, channels_a_group, eps, s);
    } else {
        of_group = statistics_of_group<THREADS>(moments + plane * parts, channels_a_group, count, parts, eps);
    }
    if (threadIdx.x == 0) means[blockIdx.x] = of_group;
    for (int k = warp; k < channels_a_group && !outlying; k += WARPS) {
        float sum = 0.0f;
        for (int i = lane; i < count; i += WARP) {
            const Moments m = moments[(plane + k) * parts + i];
            sum += m.count * (m.mean - of_group.x);
        }
#pragma unroll
        for (int o = WARP / 2; o > 0; o /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, o);
        if (lane == 0) deviations[plane + k] = sum;
    }
#endif
    for (int k = 0; k < channels_a_group; ++k) {
        const int c = first + k;
        const float f = factor[c], a = of_group.y * gamma[c] * f, b = beta[c] * f;
        for (int px = lane; px < PW; px += WARP) {
            const float* from = windows + (plane + k) * (PH * pitch) + (px / 8 * 8 + px % 2 * 4 + px % 8 / 2);
            float* to = y + (plane + k) * (PH * PW) + px;
            for (int row = warp; row < PH; row += WARPS * BATCH) {
                float v[BATCH];
#pragma unroll
                for (int j = 0; j < BATCH; ++j) v[j] = row + j * WARPS < PH ? from[(row + j * WARPS) * pitch] : 0.0f;
#pragma unroll
                for (int j = 0; j < BATCH; ++j) {
                    float u = (v[j] - of_group.x) * a + b;
                    if (u < low) u = low;  // fmaxf would hide a NaN
                    if (u > high) u = high;
                    if (row + j * WARPS < PH) to[(row + j * WARPS) * PW] = u;
                }
            }
        }
    }
}
