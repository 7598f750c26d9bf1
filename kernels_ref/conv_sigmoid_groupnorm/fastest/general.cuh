// ---- any shape, any GPU: step 4's kernels ----

namespace general {

#include "../steps/04_statistics_in_epilogue.py"  // DOWN to convolve
#include "../steps/04_statistics_in_epilogue.py"  // moments_of_warp

#if BACKWARD
// sigmoid(v). exp may overflow to infinity: 1 / infinity is the 0 that is meant.
__device__ float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }
#else
#include "../steps/04_statistics_in_epilogue.py"  // sigmoid
#endif
#include "../steps/04_statistics_in_epilogue.py"  // conv_sigmoid_moments_kernel

#if BACKWARD
// One block a group: moments (groups of all images, count) -> means (groups): mean, rstd = 1 / sqrt(variance + eps).
__global__ void merge_kernel(const Moments* moments, float2* means, int64_t count, float eps) {
#else
// One block a group: moments (groups of all images, count) -> mean, rstd = 1 / sqrt(variance + eps), both (groups).
__global__ void merge_kernel(const Moments* moments, float* mean, float* rstd, int64_t count, float eps) {
#endif
    moments += blockIdx.x * count;
    WideMoments m = {0, 0, 0};
    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
        m = merged(m, {moments[i].count, moments[i].mean, moments[i].squares});
    }
    m = block_merged(m);
    if (threadIdx.x > 0) return;
    const float variance = m.squares < 0 ? 0 : m.squares / m.count;  // fmax would hide a NaN
#if BACKWARD
    means[blockIdx.x] = make_float2(m.mean, 1.0f / sqrtf(variance + eps));
#else
    mean[blockIdx.x] = m.mean;
    rstd[blockIdx.x] = 1.0f / sqrtf(variance + eps);
#endif
}

#if BACKWARD
// y = (y - mean) * rstd * weight + bias, in place, for y (N, C, pixels). blockIdx.x is the plane
// n * C + c; the threads of all its blocks (blockIdx.y) walk over its pixels side by side, VECTOR at a time.
template <int VECTOR>
__global__ void __launch_bounds__(THREADS)
    normalise_kernel(float* y, const float2* means, const float* weight, const float* bias, int C, int channels_a_group,
                     int64_t pixels) {
    const int c = blockIdx.x % C;
    const int group = blockIdx.x / channels_a_group;  // over all images, as C is a whole number of groups
    const float m = means[group].x, f = means[group].y * weight[c], b = bias[c];
    y += blockIdx.x * pixels;
    const int64_t step = (int64_t)gridDim.y * THREADS * VECTOR;
    for (int64_t p = ((int64_t)blockIdx.y * THREADS + threadIdx.x) * VECTOR; p < pixels; p += step) {
        if constexpr (VECTOR == 4) {
            float4* at = reinterpret_cast<float4*>(y + p);
            const float4 v = *at;
            *at = {(v.x - m) * f + b, (v.y - m) * f + b, (v.z - m) * f + b, (v.w - m) * f + b};
        } else {
            y[p] = (y[p] - m) * f + b;
        }
    }
}
#else
#include "../steps/04_statistics_in_epilogue.py"  // normalise_kernel
#endif

}  // namespace general
