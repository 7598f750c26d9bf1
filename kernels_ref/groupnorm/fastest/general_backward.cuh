// ---- backward ----

// Sums of gy and of gy * (x - mean), four elements at a time or one.
__device__ void add(float2& sums, const float4& x, const float4& gy, float mean) {
    sums.x += (gy.x + gy.y) + (gy.z + gy.w);
    sums.y += (gy.x * (x.x - mean) + gy.y * (x.y - mean)) + (gy.z * (x.z - mean) + gy.w * (x.w - mean));
}
__device__ void add(float2& sums, float x, float gy, float mean) {
    sums.x += gy;
    sums.y += gy * (x - mean);
}

// What an element's gradient needs: gx = gy * scale - shift - (x - mean) * slope.
struct Line {
    float mean, scale, shift, slope;
    __device__ float of(float x, float gy) const { return gy * scale - shift - (x - mean) * slope; }
    __device__ float4 of(const float4& x, const float4& gy) const {
        return {of(x.x, gy.x), of(x.y, gy.y), of(x.z, gy.z), of(x.w, gy.w)};
    }
};

template <int VECTOR> struct Run;
template <> struct Run<1> {
    using type = float;
};
template <> struct Run<4> {
    using type = float4;
};

// One block a part of a plane: its sums of gy and of gy * xh. x, gy: (N * C, pixels); means: (groups of all images).
template <int VECTOR>
__global__ void __launch_bounds__(THREADS) part_sums_kernel(const float* x, const float* gy, const float2* means,
                                                            float2* sums, int channels, int64_t pixels, int parts) {
    __shared__ float plain[THREADS / WARP], weighted[THREADS / WARP];
    using Vector = typename Run<VECTOR>::type;
    const int plane = blockIdx.x / parts;
    const int64_t begin = (int64_t)(blockIdx.x % parts) * PART;
    const int runs = min((int64_t)PART, pixels - begin) / VECTOR;
    const float2 mean_rstd = means[plane / channels];
    const Vector* xs = reinterpret_cast<const Vector*>(x + plane * pixels + begin);
    const Vector* gys = reinterpret_cast<const Vector*>(gy + plane * pixels + begin);
    float2 mine = {0.0f, 0.0f};
#pragma unroll 4
    for (int i = threadIdx.x; i < runs; i += THREADS) add(mine, xs[i], gys[i], mean_rstd.x);
    mine.x = block_sum(mine.x, plain);
    mine.y = block_sum(mine.y, weighted);
    if (threadIdx.x == 0) sums[blockIdx.x] = {mine.x, mine.y * mean_rstd.y};
}

// From the sums of all parts (N, C, parts): of the first `for_channels` blocks (C or none) block c makes channel c's,
// gbias and gweight; of the others block g makes the means over group g (of all images) of weight * gy and of
// weight * gy * xh.
__global__ void __launch_bounds__(THREADS)
    totals_kernel(const float2* sums, const float* weight, float* gweight, float* gbias, float2* of_groups, int64_t N,
                  int C, int channels, int parts, int64_t pixels, int for_channels) {
    __shared__ float plain[THREADS / WARP], weighted[THREADS / WARP];
    float2 mine = {0.0f, 0.0f};
    if (blockIdx.x < for_channels) {
        const int all = N * parts;
#pragma unroll 8
        for (int i = threadIdx.x; i < all; i += THREADS) {
            const float2 one = sums[((int64_t)(i / parts) * C + blockIdx.x) * parts + i % parts];
            mine.x += one.x;
            mine.y += one.y;
        }
    } else {
        const int group = blockIdx.x - for_channels, all = channels * parts;
        const int first = group % (C / channels) * channels;
#pragma unroll 4
        for (int i = threadIdx.x; i < all; i += THREADS) {
            const float2 one = sums[(int64_t)group * all + i];
            const float w = weight[first + i / parts];
            mine.x += w * one.x;
            mine.y += w * one.y;
        }
    }
    mine.x = block_sum(mine.x, plain);
    mine.y = block_sum(mine.y, weighted);
    if (threadIdx.x > 0) return;
    if (blockIdx.x < for_channels) {
        gbias[blockIdx.x] = mine.x;
        gweight[blockIdx.x] = mine.y;
    } else {
        const float elements = (float)channels * pixels;
        of_groups[blockIdx.x - for_channels] = {mine.x / elements, mine.y / elements};
    }
}

// One block a part of a plane: gx. The last parts first: they may still be in L2.
template <int VECTOR>
__global__ void __launch_bounds__(THREADS)
    gx_kernel(const float* __restrict__ x, const float* __restrict__ gy, const float* weight, const float2* means,
              const float2* of_groups, float* __restrict__ gx, int C, int channels, int64_t pixels, int parts) {
    using Vector = typename Run<VECTOR>::type;
    const int job = gridDim.x - 1 - blockIdx.x, plane = job / parts, group = plane / channels;
    const int64_t begin = (int64_t)(job % parts) * PART, first = plane * pixels + begin;
    const int runs = min((int64_t)PART, pixels - begin) / VECTOR;
    const float mean = means[group].x, rstd = means[group].y;
    const Line line = {mean, weight[plane % C] * rstd, of_groups[group].x * rstd, of_groups[group].y * rstd * rstd};
    const Vector* xs = reinterpret_cast<const Vector*>(x + first);
    const Vector* gys = reinterpret_cast<const Vector*>(gy + first);
    Vector* to = reinterpret_cast<Vector*>(gx + first);
#pragma unroll 4
    for (int i = threadIdx.x; i < runs; i += THREADS) __stcs(to + i, line.of(xs[i], gys[i]));
}
