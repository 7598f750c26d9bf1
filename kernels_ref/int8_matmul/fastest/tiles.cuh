#include <climits>
#include <cstdint>

#include "../steps/04_register_tiles.py"  // SIDE to int8_matmul_kernel

constexpr int ROWS = 224, VECTORS = 128;               // outputs of a block
constexpr int WARP_ROWS = ROWS / 4, WARP_VECTORS = 64;  // of a warp: 4 warps for the rows times 2 for the x
constexpr int TILE_PIECES = 8;                         // of each row in a tile: 128 columns
constexpr int LINE = TILE_PIECES * 16;                 // bytes of each row in a tile
constexpr int PRODUCTS = TILE_PIECES / 2;              // of 32 columns each, in a tile
constexpr int STAGE_BYTES = (ROWS + VECTORS) * LINE;   // of the tiles of x and of the weight
constexpr int MOST_STAGES = 4;                         // tiles of the ring
constexpr int LINES = THREADS / TILE_PIECES;           // rows that all threads copy at a time
constexpr int I = WARP_VECTORS / 16, J = WARP_ROWS / 8;  // products of 16 x by 8 rows that a warp has
static_assert(VECTORS == 2 * WARP_VECTORS && THREADS == 256, "eight warps");

// Addresses in shared memory are numbers of 32 bits.
__device__ __forceinline__ unsigned number_of(const void* in_shared) {
    return (unsigned)__cvta_generic_to_shared(in_shared);
}

#if defined(__SIMT__) || !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define AMPERE 1
#endif

// c (16, 8) += a (16, 32) times b (32, 8), of a warp; see "Matrix Fragments for mma.m16n8k32" in the PTX ISA.
__device__ __forceinline__ void multiply(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#ifdef AMPERE
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// Loads four matrices of 8 rows of 16 bytes; each lane gives the address of a row.
__device__ __forceinline__ void load_matrices(unsigned& a, unsigned& b, unsigned& c, unsigned& d, unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(row));
}

// The same of two matrices, whose rows the first 16 lanes give.
__device__ __forceinline__ void load_matrices(unsigned& a, unsigned& b, unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(row));
}

// Copies 16 bytes to shared memory while the thread does something else; zeros where `exists` is false.
__device__ __forceinline__ void copy_16(unsigned to, const uint4* from, bool exists) {
#ifdef AMPERE
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16 : 0)
                 : "memory");
#endif
}

__device__ __forceinline__ void copy_16(unsigned to, const uint4* from) {
#ifdef AMPERE
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
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

// What the number of a piece in a row is xored with: eight rows have the same piece in different banks.
__device__ __forceinline__ int swizzle_of(int row) { return TILE_PIECES == 8 ? row % 8 : row / 2 % 4; }

// Where this thread copies from and to: piece threadIdx.x % TILE_PIECES of every LINES-th row. Rows and pieces past the
// end are the last ones again: no output of such a row is written, and of such a piece x is 0.
struct Copies {
    static constexpr int OF_X = VECTORS / LINES, OF_WEIGHT = (ROWS + LINES - 1) / LINES;
    int x_from[OF_X], weight_from[OF_WEIGHT];  // the first piece of each row
    unsigned to;                               // in the first tile of the ring

    __device__ __forceinline__ Copies(unsigned ring, int first_vector, int first_row, int batch, int rows, int pieces) {
        const int line = threadIdx.x / TILE_PIECES;
#pragma unroll
        for (int i = 0; i < OF_X; ++i) x_from[i] = min(first_vector + line + i * LINES, batch - 1) * pieces;
#pragma unroll
        for (int i = 0; i < OF_WEIGHT; ++i) weight_from[i] = min(first_row + line + i * LINES, rows - 1) * pieces;
        to = ring + line * LINE + (threadIdx.x % TILE_PIECES ^ swizzle_of(line)) * 16;
    }

    // Begins to copy the tiles that begin at the piece `first` to a place of the ring.
    __device__ __forceinline__ void copy(const uint4* x, const uint4* weight, int first, int place, int pieces) const {
        const int piece = first + threadIdx.x % TILE_PIECES, there = min(piece, pieces - 1);
        const unsigned at = to + place * STAGE_BYTES;
#pragma unroll
        for (int i = 0; i < OF_WEIGHT; ++i) {
            if ((i + 1) * LINES <= ROWS || threadIdx.x / TILE_PIECES + i * LINES < ROWS) {
                copy_16(at + (VECTORS + i * LINES) * LINE, weight + weight_from[i] + there);
            }
        }
#pragma unroll
        for (int i = 0; i < OF_X; ++i) copy_16(at + i * LINES * LINE, x + x_from[i] + there, piece < pieces);
    }
};

// The factors of the products of 32 columns.
struct Fragments {
    unsigned a[I][4], b[J][2];

    // x_row, weight_row: the address of this lane's row of the first matrices.
    __device__ __forceinline__ void load(unsigned x_row, unsigned weight_row) {
#pragma unroll
        for (int j = 0; j + 1 < J; j += 2) {
            load_matrices(b[j][0], b[j][1], b[j + 1][0], b[j + 1][1], weight_row + j * 8 * LINE);
        }
        if (J % 2) load_matrices(b[J - 1][0], b[J - 1][1], weight_row + (J - 1) * 8 * LINE);
#pragma unroll
        for (int i = 0; i < I; ++i) {
            load_matrices(a[i][0], a[i][1], a[i][2], a[i][3], x_row + i * 16 * LINE);
        }
    }
};

__device__ __forceinline__ void multiply_all(int (&sum)[I][J][4], const Fragments& f) {
#pragma unroll
    for (int i = 0; i < I; ++i) {
#pragma unroll
        for (int j = 0; j < J; ++j) multiply(sum[i][j], f.a[i], f.b[j]);
    }
}

// x (batch, pieces), x_scale (batch), weight (rows, pieces), weight_scale (rows) -> y (batch, rows). Blocks of the same
// rows are neighbours. Dynamic shared memory: STAGES times VECTORS rows of x and ROWS of the weight, TILE_PIECES of each,
// where piece p of row r is in place p ^ swizzle_of(r).
template <int STAGES>
__global__ void __launch_bounds__(THREADS, 1)
    tiles_kernel(const uint4* x, const float* x_scale, const uint4* weight, const float* weight_scale, float* y,
                 int batch, int rows, int pieces, int vector_tiles) {
#ifdef AMPERE
    extern __shared__ __align__(128) uint4 memory[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_vector = blockIdx.x % vector_tiles * VECTORS, first_row = blockIdx.x / vector_tiles * ROWS;
    const int warp_vector = warp % 2 * WARP_VECTORS, warp_row = warp / 2 * WARP_ROWS;
    const unsigned ring = number_of(memory);
    const Copies copies(ring, first_vector, first_row, batch, rows, pieces);
    const int tiles = (pieces + TILE_PIECES - 1) / TILE_PIECES;

#pragma unroll
    for (int k = 0; k < STAGES; ++k) {
        if (k < tiles) copies.copy(x, weight, k * TILE_PIECES, k, pieces);
        commit_copies();  // an empty group where nothing is left to copy
    }
    // This lane's rows of the matrices: of x eight rows, the next eight, and the same of the next 16 columns; of the
    // weight eight rows, the same of the next 16 columns, and both of the next eight rows.
    const int swizzle = swizzle_of(lane % 8);
    const unsigned x_row = ring + (warp_vector + lane % 16) * LINE + (lane / 16 ^ swizzle) * 16;
    const unsigned weight_row =
        ring + (VECTORS + warp_row + lane % 8 + lane / 16 * 8) * LINE + (lane / 8 % 2 ^ swizzle) * 16;
    int sum[I][J][4] = {};
    Fragments factors[2];  // of these 32 columns and of the next ones
    wait_for_copies<STAGES - 1>();
    __syncthreads();  // the first tile is there
    factors[0].load(x_row, weight_row);

    int place = 0;
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
        for (int k = 1; k < PRODUCTS; ++k) {
            const unsigned at = place * STAGE_BYTES;
            factors[k % 2].load((x_row + at) ^ k * 32, (weight_row + at) ^ k * 32);
            multiply_all(sum, factors[(k - 1) % 2]);
        }
        wait_for_copies<STAGES - 2>();
        __syncthreads();  // the next tile is there, and all warps have this one in registers
        if (tile + STAGES < tiles) copies.copy(x, weight, (tile + STAGES) * TILE_PIECES, place, pieces);
        commit_copies();
        place = place + 1 == STAGES ? 0 : place + 1;
        if (tile + 1 < tiles) factors[0].load(x_row + place * STAGE_BYTES, weight_row + place * STAGE_BYTES);
        multiply_all(sum, factors[(PRODUCTS - 1) % 2]);
    }

    const int n = lane / 4, two = lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < J; ++j) {
        const int row = first_row + warp_row + 8 * j + two;
        const float scale[2] = {row < rows ? weight_scale[row] : 0.0f, row + 1 < rows ? weight_scale[row + 1] : 0.0f};
#pragma unroll
        for (int i = 0; i < I; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int vector = first_vector + warp_vector + 16 * i + 8 * half + n;
                if (vector >= batch || row >= rows) continue;
                const float factor = x_scale[vector];
                const float low = (float)sum[i][j][2 * half] * factor * scale[0];
                const float high = (float)sum[i][j][2 * half + 1] * factor * scale[1];
                float* const to = y + (int64_t)vector * rows + row;
                if (rows % 2 == 0) {
                    *reinterpret_cast<float2*>(to) = make_float2(low, high);
                } else {
                    to[0] = low;
                    if (row + 1 < rows) to[1] = high;
                }
            }
        }
    }
#endif
}
