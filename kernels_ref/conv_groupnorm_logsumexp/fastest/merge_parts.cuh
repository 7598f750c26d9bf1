// The same of a group of an uneven image, from x: the image; weight and bias: those of the group's first channel.
template <int THREADS>
__device__ __noinline__ float2 statistics_in_double(const float* x, const float* weight, const float* bias,
                                                    int channels, Shape s, float eps) {
    const int64_t pixels = (int64_t)s.OH * s.OW, all = channels * pixels;
    const auto element = [&](int64_t i) {
        const int64_t c = i / pixels, row = i % pixels / s.OW, column = i % s.OW;
        return sum_in_double(x + row * s.W + column, weight + c * s.C * 9, s.C, s.H, s.W) + bias[c];
    };
    const double about = element(0);  // sums of squares about 0 have no correct digit where the mean is large
    double2 v = {0.0, 0.0};
    for (int64_t i = threadIdx.x; i < all; i += THREADS) {
        const double d = element(i) - about;
        v = {v.x + d, v.y + d * d};
    }
    v = sums_of_block<THREADS>(v);
    const double variance = (v.y - v.x * v.x / all) / all;
    return {(float)(about + v.x / all), (float)(1.0 / sqrt((variance < 0.0 ? 0.0 : variance) + eps))};
}

// One block a group of an image: its moments -> mean and 1 / sqrt(variance + eps).
__global__ void __launch_bounds__(MERGERS)
    merge_parts_kernel(const Moments* moments, const float* x, const float* weight, const float* bias,
                       float2* statistics, int channels_a_group, int parts, int makers, Shape s, float eps) {
    const int groups = s.OC / channels_a_group, n = blockIdx.x / groups, first = blockIdx.x % groups * channels_a_group;
    float2 of_group = statistics_of_group<MERGERS>(moments + (int64_t)blockIdx.x * channels_a_group * parts,
                                                   channels_a_group, moments_count(s, n, makers), parts, eps);
    if (of_group.y < 0.0f) {
        of_group = statistics_in_double<MERGERS>(x + (int64_t)n * s.C * s.H * s.W, weight + (int64_t)first * s.C * 9,
                                                 bias + first, channels_a_group, s, eps);
    }
    if (threadIdx.x == 0) statistics[blockIdx.x] = of_group;
}
