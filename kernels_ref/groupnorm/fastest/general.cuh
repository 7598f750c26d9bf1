#include <algorithm>
#include <climits>
#include <cstdint>
#include <cuda_runtime.h>

#include "../steps/04_reread_from_l2.py"  // WARP to moments_of

// x (N, C, pixels) -> y, the same shape. A group is `channels` neighbouring channels of an image, in one piece, and is
// cut into `parts`. drawn: jobs drawn so far; finished[g]: parts of group g that are added up; statistics[g]: its
// moments, there once ready[g] is 1. All three counters start at 0.
template <int VECTOR>
#if !BACKWARD
__global__ void __launch_bounds__(THREADS, BLOCKS)
    groupnorm_kernel(const float* x, const float* weight, const float* bias, float* y, Moments* of_part,
                     Moments* statistics, int* drawn, int* finished, int* ready, int total, int groups, int channels,
                     int64_t pixels, int parts, int behind, float eps) {
#else
__global__ void __launch_bounds__(THREADS, BLOCKS)
    groupnorm_kernel(const float* x, const float* weight, const float* bias, float* y, Moments* of_part, float2* means,
                     int* drawn, int* finished, int* ready, int total, int groups, int channels, int64_t pixels,
                     int parts, int behind, float eps) {
#endif
    __shared__ int job, is_last;
    if (threadIdx.x == 0) job = atomicAdd(drawn, 1);
    __syncthreads();  // the job is drawn

    // Jobs come in rounds. Round r has each part's statistics for group r and, in turn with them, its result for the
    // group `behind` rounds before; the first and the last rounds have one of the two.
    const int round = job / (2 * parts), part = job % (2 * parts) / 2;
    const bool writes = job % 2;
    const int group = writes ? round - behind : round;
    if (group < 0 || group >= total) return;
    const int64_t elements = channels * pixels, begin = (int64_t)part * PART;
    const int size = min((int64_t)PART, elements - begin);
    x += group * elements + begin;
    y += group * elements + begin;

    if (!writes) {
        const Moments m = moments_of<VECTOR>(x, size);
        if (threadIdx.x == 0) {
            of_part[(int64_t)group * parts + part] = m;
            __threadfence();  // whoever sees the count sees the moments
            is_last = atomicAdd(finished + group, 1) == parts - 1;
            __threadfence();
        }
        __syncthreads();  // is_last is known
        if (!is_last) return;
        Moments all = {0.0f, 0.0f, 0.0f};
        for (int p = threadIdx.x; p < parts; p += THREADS) all = merged(all, of_part[(int64_t)group * parts + p]);
        all = merged_in_block(all);
        if (threadIdx.x == 0) {
#if !BACKWARD
            statistics[group] = all;
#else
            means[group] = {all.mean, 1.0f / sqrtf(all.squares / elements + eps)};
#endif
            __threadfence();  // whoever sees ready sees the statistics
            atomicExch(ready + group, 1);
        }
        return;
    }

    float v[AT_ONCE / VECTOR][VECTOR];
    load<VECTOR>(x, size, v);  // under way while the block waits
    if (threadIdx.x == 0) {
        while (atomicAdd(ready + group, 0) == 0) __nanosleep(100);
        __threadfence();
    }
    __syncthreads();  // the statistics are there
#if !BACKWARD
    const float mean = statistics[group].mean, rstd = 1.0f / sqrtf(statistics[group].squares / elements + eps);
#else
    const float mean = means[group].x, rstd = means[group].y;
#endif
    const int64_t before = begin / pixels;  // whole channels of the group before this part
    const int64_t offset = begin - before * pixels;  // pixels of its first channel before it
    const int first = group % groups * channels + before;
#pragma unroll
    for (int run = 0; run < AT_ONCE / VECTOR; ++run) {
        const int e = first_of<VECTOR>(run);
        if (e >= size) continue;
        const int64_t p = offset + e;
        const int c = p < pixels ? first : first + (int)(p / pixels);  // divides only where a channel ends in this part
        const float w = weight[c] * rstd, b = bias[c];
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) v[run][k] = (v[run][k] - mean) * w + b;
        // y will not be read here: __stcs lets it leave L2 before x.
        if constexpr (VECTOR == 4) {
            __stcs(reinterpret_cast<float4*>(y + e), float4{v[run][0], v[run][1], v[run][2], v[run][3]});
        } else {
            __stcs(y + e, v[run][0]);
        }
    }
}
