#include <climits>
#include <cstdint>
#include <cuda_fp16.h>

#include "../steps/05_tensor_cores.py"  // WARPS to STAGED
#include "tensor_cores.cuh"
#include "../steps/05_tensor_cores.py"  // merge to any_kernel

constexpr int STAGES = 2;                       // places of each lane's ring
constexpr int BLOCKS = 2;                       // of a multiprocessor: of more, few take part in the last round
constexpr int PIECES = 32 / ROWS;  // that a warp takes at a time: a lane has the scale of a row and a piece
constexpr int CHUNKS = PIECES * 4;  // of 16 bytes, of each row of them
constexpr int PLACE = THREADS * sizeof(uint4);  // bytes from a lane's chunk in the ring to its next one

struct Shared {
    uint4 weights[STAGES][2][PIECES][THREADS];  // of each lane's row, and of the row eight further down
    float part[2][WARPS][ROWS];
};

// c += the weights of word upper, of one row, and of lower, of the row eight further down, times their x.
__device__ __forceinline__ void add_exact(float (&c)[4], unsigned upper, unsigned lower, uint4 x) {
    multiply(c, unpack_low(upper), unpack_low(lower), unpack_high(upper), unpack_high(lower), x.x, x.y);
    upper >>= 8, lower >>= 8;
    multiply(c, unpack_low(upper), unpack_low(lower), unpack_high(upper), unpack_high(lower), x.z, x.w);
}

// A matrix whose rows begin at multiples of 16 bytes. chunks: of 16 bytes, of a row; padded: filled up to whole pieces.
// groups: of a row, each of 2^pieces_log pieces of PIECE words.
struct Matrix {
    const uint4* packed;  // (rows, chunks)
    const unsigned short* scales;  // (rows, groups), bits of halves
    int rows, chunks, padded, groups, pieces_log;
};

// What a warp copies next: pieces of a tile. Rows, chunks and groups past the end are the last ones again: no such row
// is written, and there the x of a chunk is 0.
struct Copies {
    int upper, lower;  // the first chunk of this lane's rows of the tile
    int first_scale;  // of the row that this lane loads scales of
    int tile, chunk;  // the first one of the pieces

    __device__ __forceinline__ void begin_tile(const Matrix& m) {
        const int row = tile * ROWS + threadIdx.x % 32 / 4;
        upper = min(row, m.rows - 1) * m.chunks;
        lower = min(row + 8, m.rows - 1) * m.chunks;
        first_scale = min(tile * ROWS + (int)threadIdx.x % ROWS, m.rows - 1) * m.groups;
        chunk = threadIdx.x / 32 * CHUNKS;
    }

    // Begins to copy this lane's weights to `to`, [2][PIECES] places that lie PLACE bytes apart, and goes on to the next
    // pieces. Returns the bits of a scale: row lane % ROWS, piece lane / ROWS.
    __device__ __forceinline__ unsigned copy(const Matrix& m, unsigned to) {
        unsigned scale = 0;
        if (tile * ROWS < m.rows && chunk < m.padded) {
#pragma unroll
            for (int k = 0; k < PIECES; ++k) {
                const int from = min(chunk + 4 * k + (int)threadIdx.x % 4, m.chunks - 1);
                copy_16(to + k * PLACE, m.packed + upper + from);
                copy_16(to + (PIECES + k) * PLACE, m.packed + lower + from);
            }
            const int group = (chunk / 4 + (int)threadIdx.x % 32 / ROWS) >> m.pieces_log;
            scale = m.scales[first_scale + min(group, m.groups - 1)];
            chunk += WARPS * CHUNKS;
            if (chunk >= m.padded) {
                tile += gridDim.x;
                begin_tile(m);
            }
        }
        commit_copies();  // an empty group where nothing is left to copy
        return scale;
    }
};

// x (4 chunks of eight halves) and the matrix -> y (rows). A block takes every gridDim.x-th
// tile of ROWS rows, a warp PIECES of every WARPS * PIECES pieces of them, and a lane 16 bytes of two rows of each piece.
__global__ void __launch_bounds__(THREADS, BLOCKS)
    one_vector_kernel(const uint4* x, const __grid_constant__ Matrix m, __half* y) {
#if defined(__SIMT__) || __CUDA_ARCH__ >= 800
    extern __shared__ uint4 memory[];
    Shared& s = *reinterpret_cast<Shared*>(memory);
    // Neighbouring words of x lie in different banks.
    uint4* const eight = memory + sizeof(Shared) / sizeof(uint4);  // of word 4 i + j of x: place j * pitch + i
    const int pitch = m.padded + 2;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n = lane / 4;
    const unsigned ring = number_of(&s.weights[0][0][0][threadIdx.x]);
    Copies next = {0, 0, 0, (int)blockIdx.x, 0};
    next.begin_tile(m);
    unsigned scale[STAGES];  // that came with each place of the ring, the next one first
#pragma unroll
    for (int k = 0; k < STAGES; ++k) scale[k] = next.copy(m, ring + k * 2 * PIECES * PLACE);

    for (int w = threadIdx.x; w < 4 * m.padded; w += THREADS) {
        const uint4 v = w < 4 * m.chunks ? x[w] : uint4{};
        eight[w % 4 * pitch + w / 4] = {v.x & 0xffff | v.z << 16, v.x >> 16 | v.z & 0xffff0000,
                                        v.y & 0xffff | v.w << 16, v.y >> 16 | v.w & 0xffff0000};
    }
    __syncthreads();  // x is there

    // Of the eight columns of a product one is x, and the first four lanes have it. The others multiply by 0.
    const bool has_x = lane < 4;
    const unsigned eight_x = number_of(eight), pitch_bytes = pitch * sizeof(uint4);
    uint4 v[2] = {};
    int place = 0, buffer = 0;
    for (int tile = blockIdx.x; tile * ROWS < m.rows; tile += gridDim.x, buffer ^= 1) {
        float upper_sum = 0.0f, lower_sum = 0.0f;
#pragma unroll 1
        for (int chunk = warp * CHUNKS; chunk < m.padded; chunk += WARPS * CHUNKS) {
            wait_for_copies<STAGES - 1>();
            uint4 a[PIECES], b[PIECES];
#pragma unroll
            for (int k = 0; k < PIECES; ++k) {
                a[k] = load_shared(ring + (place * 2 * PIECES + k) * PLACE);
                b[k] = load_shared(ring + (place * 2 * PIECES + PIECES + k) * PLACE);
            }
            const float factor = __half2float(__ushort_as_half((unsigned short)scale[0]));
#pragma unroll
            for (int k = 1; k < STAGES; ++k) scale[k - 1] = scale[k];
            // This lane alone reads this place, and has done so.
            scale[STAGES - 1] = next.copy(m, ring + place * 2 * PIECES * PLACE);
            place = place + 1 == STAGES ? 0 : place + 1;
            const unsigned own = eight_x + (chunk + lane % 4) * sizeof(uint4);
            if (has_x) v[0] = load_shared(own);
#pragma unroll
            for (int k = 0; k < PIECES; ++k) {
                const unsigned uppers[] = {a[k].x, a[k].y, a[k].z, a[k].w};
                const unsigned lowers[] = {b[k].x, b[k].y, b[k].z, b[k].w};
                float even[4] = {}, odd[4] = {};
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int step = 4 * k + j, after = step + 1;
                    if (has_x && after < 4 * PIECES) {
                        v[after % 2] = load_shared(own + after / 4 * 64 + after % 4 * pitch_bytes);
                    }
                    add_exact(j % 2 ? odd : even, uppers[j], lowers[j], v[step % 2]);
                }
                upper_sum += __shfl_sync(0xffffffff, factor, k * ROWS + n) * (even[0] + odd[0]);
                lower_sum += __shfl_sync(0xffffffff, factor, k * ROWS + n + 8) * (even[2] + odd[2]);
            }
        }
        if (lane % 4 == 0) {
            s.part[buffer][warp][n] = upper_sum;
            s.part[buffer][warp][n + 8] = lower_sum;
        }
        __syncthreads();  // all warps' sums of this tile are there; the other buffer takes those of the next one
        const int to = tile * ROWS + threadIdx.x;
        if (threadIdx.x < ROWS && to < m.rows) {
            float total = 0.0f;
#pragma unroll
            for (int k = 0; k < WARPS; ++k) total += s.part[buffer][k][threadIdx.x];
            y[to] = __float2half(total);
        }
    }
#endif
}
