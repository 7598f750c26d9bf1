#include <climits>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <cuda_fp16.h>

#if defined(__SIMT__) || !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define AMPERE 1
#endif

// c (16, 8) += a (16, 16) times b (16, 8), of a warp; see "Matrix Fragments for mma.m16n8k16" in the PTX ISA.
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#ifdef AMPERE
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// Loads four matrices of 8 rows of 16 bytes; each lane gives the address of a row.
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(row)
                 : "memory");
}

// The same, each of 8 x 8 halves transposed.
__device__ __forceinline__ void load_transposed(unsigned (&m)[4], unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(row)
                 : "memory");
}

// Copies 16 bytes to shared memory while the thread does something else; zeros where `exists` is false.
__device__ __forceinline__ void copy_16(unsigned to, const __half* from, bool exists) {
#ifdef AMPERE
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16 : 0)
                 : "memory");
#endif
}

__device__ __forceinline__ void copy_16(unsigned to, const void* from) {
#ifdef AMPERE
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#endif
}

__device__ __forceinline__ void commit_copies() {
#ifdef AMPERE
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all groups of this thread's copies but the last GROUPS are there.
template <int GROUPS>
__device__ __forceinline__ void wait_for_copies() {
#ifdef AMPERE
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
#endif
}

// 2 to the power of x.
__device__ __forceinline__ float power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Two floats as the nearest halves.
__device__ __forceinline__ unsigned pack(float low, float high) {
    unsigned two;
#ifdef AMPERE
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
#endif
    return two;
}
