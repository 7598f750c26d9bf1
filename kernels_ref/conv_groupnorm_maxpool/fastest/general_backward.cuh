// ---- any shape, any GPU: the kernels of backward.py ----

namespace general {

#include "../backward.py"  // MAX_GRID_Y
#include "../backward.py"  // conv2d_kernel to norm_scale_maxpool_clamp_kernel, T = float

// One block a plane n * C + c: gy, at (N, C, PH, PW), v (N, C, H, W) -> the plane's sums of gm and of gm * xh, both
// (N, C).
__global__ void plane_sums_kernel(const float* gy, const int* at, const float* v, const float* mean, const float* rstd,
                                  float* plain, float* weighted, int channels_a_group, int H, int W, int pool, int PH,
                                  int PW) {
    const int64_t group = blockIdx.x / channels_a_group;  // over all images
    const float m = mean[group], r = rstd[group];
    const int64_t first = (int64_t)blockIdx.x * PH * PW;
    v += (int64_t)blockIdx.x * H * W;
    float sum = 0, products = 0;
    for (int64_t i = threadIdx.x; i < (int64_t)PH * PW; i += THREADS) {
        const int place = at[first + i];
        if (place < 0) continue;  // the clamp has stopped it
        const int64_t row = i / PW * pool + place / pool, column = i % PW * pool + place % pool;
        sum += gy[first + i];
        products += gy[first + i] * ((v[row * W + column] - m) * r);
    }
    sum = block_sum(sum);
    products = block_sum(products);
    if (threadIdx.x == 0) {
        plain[blockIdx.x] = sum;
        weighted[blockIdx.x] = products + 0.0f * m;  // NaN in a group of NaN, as in eager
    }
}

#include "../backward.py"  // group_means_kernel to images_kernel, T = float

}  // namespace general
