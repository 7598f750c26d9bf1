// ---- backward of any shape, on any GPU ----

namespace general {

// What conv_sigmoid_moments_kernel makes before the sigmoid: v = convolution + both biases.
template <int K>
__global__ void __launch_bounds__(TILE_X* WARPS)
    values_kernel(const float* x, const float* weight, const float* conv_bias, const float* bias, float* v, Shape s) {
    const int x0 = blockIdx.x % s.tiles_x * TILE_X, y0 = blockIdx.x / s.tiles_x % s.tiles_y * TILE_Y;
    const int64_t n = blockIdx.x / s.tiles_x / s.tiles_y;
    const int ox = x0 + threadIdx.x, oy = y0 + threadIdx.y * DOWN;
    const int64_t pixels = (int64_t)s.OH * s.OW;
    x += n * s.C * s.H * s.W;
    v += n * s.OC * pixels + (int64_t)oy * s.OW + ox;
    for (int first = 0; first < s.OC; first += OUT) {
        float sum[DOWN][OUT];
        convolve<K>(x, weight, conv_bias, s, y0, x0, first, sum);
#pragma unroll
        for (int o = 0; o < OUT; ++o, v += pixels) {
            if (first + o >= s.OC) break;
#pragma unroll
            for (int d = 0; d < DOWN; ++d) {
                if (ox < s.OW && oy + d < s.OH) v[d * s.OW] = sum[d][o] + bias[first + o];
            }
        }
    }
}

// Sum of every thread's v, returned to every thread of the block. All of them must call it.
__device__ float block_sum(float v) {
    __shared__ float of_warp[THREADS / WARP];
    v = warp_sum(v);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = v;
    __syncthreads();  // all warps have written
    float sum = 0.0f;
    for (int warp = 0; warp < THREADS / WARP; ++warp) sum += of_warp[warp];
    __syncthreads();  // all have read: the next call may write
    return sum;
}

// One block a plane n * OC + c: gy, v (N, OC, pixels) -> the plane's sums of gy and of gy * sh, both (N, OC). means
// (groups of all images): mean and rstd.
__global__ void plane_sums_kernel(const float* gy, const float* v, const float2* means, const float* scale,
                                  float* plain, float* weighted, int OC, int channels_a_group, int64_t pixels) {
    const float2 m = means[blockIdx.x / channels_a_group];
    const float factor = scale[blockIdx.x % OC];
    gy += blockIdx.x * pixels;
    v += blockIdx.x * pixels;
    float sum = 0.0f, products = 0.0f;
    for (int64_t p = threadIdx.x; p < pixels; p += THREADS) {
        sum += gy[p];
        products += gy[p] * ((sigmoid(v[p] * factor) - m.x) * m.y);
    }
    sum = block_sum(sum);
    products = block_sum(products);
    if (threadIdx.x == 0) {
        plain[blockIdx.x] = sum;
        weighted[blockIdx.x] = products;
    }
}

// One thread a group of an image: terms: a and b, the group's means of weight * gy and of weight * gy * sh.
__global__ void group_means_kernel(const float* plain, const float* weighted, const float* weight, float2* terms,
                                   int64_t groups_of_all_images, int OC, int channels_a_group, int64_t pixels) {
    const int64_t group = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (group >= groups_of_all_images) return;
    float sum = 0.0f, products = 0.0f;
    for (int64_t plane = group * channels_a_group; plane < (group + 1) * channels_a_group; ++plane) {
        sum += weight[plane % OC] * plain[plane];
        products += weight[plane % OC] * weighted[plane];
    }
    const float part = 1.0f / ((float)channels_a_group * pixels);
    terms[group] = make_float2(sum * part, products * part);
}

// One block a plane: gv, in v's place, and the plane's sums of gv and of gq * v, total and total_scale (N, OC).
__global__ void gv_kernel(const float* gy, float* v, const float2* means, const float2* terms, const float* scale,
                          const float* gn_weight, float* total, float* total_scale, int OC, int channels_a_group,
                          int64_t pixels) {
    const int c = blockIdx.x % OC;
    const float2 m = means[blockIdx.x / channels_a_group], ab = terms[blockIdx.x / channels_a_group];
    const float a = ab.x * m.y, b = ab.y * m.y * m.y, factor = scale[c], gamma = gn_weight[c] * m.y;
    gy += blockIdx.x * pixels;
    v += blockIdx.x * pixels;
    float sum = 0.0f, products = 0.0f;
    for (int64_t p = threadIdx.x; p < pixels; p += THREADS) {
        const float value = v[p], s = sigmoid(value * factor);
        const float gs = gy[p] * gamma - (a + (s - m.x) * b), gq = gs * s * (1.0f - s);
        v[p] = gq * factor;
        sum += gq * factor;
        products += gq * value;
    }
    sum = block_sum(sum);
    products = block_sum(products);
    if (threadIdx.x == 0) {
        total[blockIdx.x] = sum;
        total_scale[blockIdx.x] = products;
    }
}

// gv (N, OC, OH, OW), weight (OC, C, KH, KW) -> gx (N, C, H, W), `total` elements.
__global__ void gx_kernel(const float* gv, const float* weight, float* gx, int64_t total, Shape s) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int ix = i % s.W, iy = i / s.W % s.H, c = i / s.W / s.H % s.C;
    const int64_t n = i / s.W / s.H / s.C;
    float sum = 0.0f;
    for (int oc = 0; oc < s.OC; ++oc) {
        float part = 0.0f;  // a channel's: long sums round less in two steps
        for (int ky = 0; ky < s.KH; ++ky) {
            const int oy = iy - ky;  // the window that has this pixel in its row ky
            if (oy < 0 || oy >= s.OH) continue;
            const float* gv_row = gv + ((n * s.OC + oc) * s.OH + oy) * s.OW;
            const float* w_row = weight + (((int64_t)oc * s.C + c) * s.KH + ky) * s.KW;
            for (int kx = 0; kx < s.KW; ++kx) {
                const int ox = ix - kx;
                if (ox >= 0 && ox < s.OW) part += gv_row[ox] * w_row[kx];
            }
        }
        sum += part;
    }
    gx[i] = sum;
}

// Stage 1 of gweight, one warp for each of `weights` elements and each row blockIdx.y of parts (rows, weights). Row r
// has images r, r + rows, r + 2 * rows, ... : one image a row, unless there are more images than a grid may have rows.
__global__ void weight_parts_kernel(const float* gv, const float* x, float* parts, int64_t N, int64_t weights,
                                    Shape s) {
    const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WARP;  // this warp's element of weight
    const int lane = threadIdx.x % WARP;
    if (i >= weights) return;  // all lanes together
    const int kx = i % s.KW, ky = i / s.KW % s.KH, c = i / s.KW / s.KH % s.C, oc = i / s.KW / s.KH / s.C;
    float sum = 0.0f;
    for (int64_t n = blockIdx.y; n < N; n += gridDim.y) {
        const float* gv_plane = gv + (n * s.OC + oc) * s.OH * s.OW;
        const float* x_plane = x + (n * s.C + c) * s.H * s.W + (int64_t)ky * s.W + kx;
        for (int p = lane; p < s.OH * s.OW; p += WARP) {
            sum += gv_plane[p] * x_plane[(int64_t)(p / s.OW) * s.W + p % s.OW];
        }
    }
    sum = warp_sum(sum);
    if (lane == 0) parts[blockIdx.y * weights + i] = sum;
}

}  // namespace general
