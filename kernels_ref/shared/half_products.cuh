__device__ __forceinline__ float power_of_two(int e) { return __uint_as_float((uint32_t)(e + 127) << 23); }

// e such that 2^e brings `largest` to 2^9 ... 2^10, where halves are at their best: 2^-24 is left of it at least.
__device__ __forceinline__ int exponent_for(float largest) {
    const int e = 9 + 127 - (int)(__float_as_uint(largest) >> 23);
    return largest == 0.0f ? 0 : min(max(e, -118), 40);
}

#if CONV_GROUPNORM_LOGSUMEXP
// The least exponent of a scale of x with which what halves lose of a number, 2^-25 / 2^e at most, matters to nothing:
// no more than 2^-22, and times the largest weight 2^-25.
__device__ __forceinline__ int lowest_for(float largest_weight) {
    return max(-3, (int)(__float_as_uint(largest_weight) >> 23) - 126);
}
#endif

#ifdef TENSOR_CORES
// Two floats as the nearest halves.
__device__ __forceinline__ uint32_t halves(float low, float high) {
    const __half2 h = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&h);
}

// The nearest halves to what `h` leaves of both.
__device__ __forceinline__ uint32_t rest(uint32_t h, float low, float high) {
    const float2 f = __half22float2(*reinterpret_cast<const __half2*>(&h));
    return halves(low - f.x, high - f.y);
}

// d += a (16 channels x 16 terms) * b (16 terms x 8 pixels)
__device__ __forceinline__ void mma16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// d = c + a * b
__device__ __forceinline__ void mma16_from(float (&d)[4], const float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                           uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

// d += a (16 channels x 8 terms) * b (8 terms x 8 pixels)
__device__ __forceinline__ void mma8(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b0) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(b0));
}

// Fragments of 8 pixels of 8 channels each, for b; a lane gives the address of one pixel.
__device__ __forceinline__ void fragments(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d, uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(at));
}
__device__ __forceinline__ void fragments(uint32_t& a, uint32_t& b, uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(at));
}

// Copies to shared memory that go on while the thread does something else; zeros where `in` is false.
__device__ __forceinline__ void copy16(uint32_t to, const float* from, bool in) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(in ? 16 : 0) : "memory");
}
__device__ __forceinline__ void copy4(uint32_t to, const float* from, bool in) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(in ? 4 : 0) : "memory");
}
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#endif
