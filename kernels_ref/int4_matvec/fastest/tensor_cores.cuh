// c (16, 8) += a (16, 16) times b (16, 8), of a warp; see "Matrix Fragments for mma.m16n8k16" in the PTX ISA.
__device__ __forceinline__ void multiply(float c[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                         unsigned b1) {
#if defined(__SIMT__) || __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}

// Returns the weights 0 and 4 of a word, (1024 + q) - 1032. The bits 0x6400 are the half 1024, whose last bit counts 1.
__device__ __forceinline__ unsigned unpack_low(unsigned word) {
    unsigned two;
    asm("{ .reg .b32 both; lop3.b32 both, %1, %2, %3, 0xea; fma.rn.f16x2 %0, both, %4, %5; }"
        : "=r"(two)
        : "r"(word), "r"(0x000f000f), "r"(0x64006400), "r"(0x3c003c00), "r"(0xe408e408));
    return two;
}

// Returns the weights 1 and 5 of a word, (1024 + 16 q) / 16 - 72.
__device__ __forceinline__ unsigned unpack_high(unsigned word) {
    unsigned two;
    asm("{ .reg .b32 both; lop3.b32 both, %1, %2, %3, 0xea; fma.rn.f16x2 %0, both, %4, %5; }"
        : "=r"(two)
        : "r"(word), "r"(0x00f000f0), "r"(0x64006400), "r"(0x2c002c00), "r"(0xd480d480));
    return two;
}

// Addresses in shared memory are numbers of 32 bits.
__device__ __forceinline__ unsigned number_of(const void* in_shared) {
    return (unsigned)__cvta_generic_to_shared(in_shared);
}

// Copies to shared memory that go on while the thread does something else.
__device__ __forceinline__ void copy_16(unsigned to, const void* from) {
#if defined(__SIMT__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#endif
}

__device__ __forceinline__ void commit_copies() {
#if defined(__SIMT__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all groups of this thread's copies but the last GROUPS are there.
template <int GROUPS>
__device__ __forceinline__ void wait_for_copies() {
#if defined(__SIMT__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
#endif
}

// Loads 16 bytes of shared memory, in the order of the source among the tensor cores' instructions: the compiler would
// bring all loads forward, for which there are not enough registers.
__device__ __forceinline__ uint4 load_shared(unsigned from) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(from));
    return v;
}
