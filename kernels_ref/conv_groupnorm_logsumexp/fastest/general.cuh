// ---- any shape, any GPU: step 4's kernels ----

namespace general {

#include "../steps/04_statistics_in_epilogue.py"  // DOWN to convolve

// Moments of both together (Chan, Golub and LeVeque, 1979).
__device__ Moments merged(const Moments& a, const Moments& b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float d = b.mean - a.mean, part = b.count / count;
    return {count, a.mean + d * part, a.squares + b.squares + d * d * a.count * part};
}

#include "../steps/04_statistics_in_epilogue.py"  // moments_of_warp to norm_residual_logsumexp_kernel

}  // namespace general
