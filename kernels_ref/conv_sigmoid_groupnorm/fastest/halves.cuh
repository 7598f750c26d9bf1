__device__ __forceinline__ float power_of_two(int e) { return __int_as_float((e + 127) << 23); }

// Whether numbers up to `largest` can be scaled into halves, which reach from 2^-24 to 2^16. 2^one: what is to be 1
// there, so that the largest is 2^14 to 2^15.
__device__ __forceinline__ bool fits_halves(float largest, int& e) {
    e = (int)(__float_as_uint(largest) >> 23) - 127 - 14;
    if (largest == 0.0f) e = 0;
    return e >= -64 && e <= 36;  // infinity is none
}

// Halves cut small values off at 2^-39 of a tile's largest, small weights at 2^-39 of a channel's. The 72 products of a
// sum are off by 144 * 2^-39 * largest * reach then, at most: up to ENOUGH it is 2^-22 in a sigmoid's exponent, as a
// rule a tenth of it, less than float32 itself is off by. reach: see find_reach.
constexpr float ENOUGH = 512.0f;

// Beyond that, halves still do where no pixel is less than LEAST of the largest, but 0: what they cut off is then less
// than float32 rounds. Beside an outlier it is more.
constexpr float LEAST = 1.0f / 65536.0f;

__device__ __forceinline__ bool may_cut(float largest, float value) {
    return value != 0.0f && !(value >= largest * LEAST);
}

// Two floats as two half2: the nearest halves, and the nearest to what is left.
__device__ __forceinline__ void split(float a, float b, unsigned& high, unsigned& low) {
    const __half2 h = __floats2half2_rn(a, b);
    const float2 f = __half22float2(h);
    const __half2 l = __floats2half2_rn(a - f.x, b - f.y);
    high = *reinterpret_cast<const unsigned*>(&h);
    low = *reinterpret_cast<const unsigned*>(&l);
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(ALL_LANES, v, offset);
    return v;
}

// The largest weight times scale -> shared.reach, for all to read after the next barrier.
template <typename Memory>
__device__ __forceinline__ void find_reach(const float* weight, const float* scale, Memory& shared) {
    float reach = 0.0f;
#pragma unroll
    for (int i = 0; i < OUT * IN * TAPS / THREADS; ++i) {
        const int k = i * THREADS + threadIdx.x;
        reach = fmaxf(reach, fabsf(weight[k] * scale[k / (IN * TAPS)]));
    }
#pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        reach = fmaxf(reach, __shfl_xor_sync(ALL_LANES, reach, offset));
    }
    if (threadIdx.x % WARP == 0) shared.warp_max[threadIdx.x / WARP] = reach;
    __syncthreads();  // every warp's is there
#pragma unroll
    for (int warp = 0; warp < WARPS; ++warp) reach = fmaxf(reach, shared.warp_max[warp]);
    __syncthreads();  // all have read
    if (threadIdx.x == 0) shared.reach = reach;
}

#ifdef TENSOR_CORES
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(at));
}

// sums (16 channels, 8 pixels) = weights (16, 16) times x (16, 8)
__device__ __forceinline__ void multiply_first(float (&sum)[4], const unsigned (&w)[4], unsigned x0, unsigned x1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
        : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(x0), "r"(x1), "f"(0.0f));
}

// sums (16 channels, 8 pixels) += weights (16, 16) times x (16, 8)
__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&w)[4], unsigned x0, unsigned x1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(x0), "r"(x1));
}

// sums (16, 8) += weights (16, 8) times x (8, 8)
__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&w)[2], unsigned x) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(w[0]), "r"(w[1]), "r"(x));
}

// 1 / (1 + 2^z). 2^z may be infinity: the 0 that is then meant comes out.
__device__ __forceinline__ float sigmoid_of_exponent(float z) {
    float power, result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(z));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(1.0f + power));
    return result;
}
#endif
