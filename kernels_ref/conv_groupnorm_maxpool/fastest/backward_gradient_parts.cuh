// ---- backward on tensor cores: v again, gv, gx and the weight's gradient from one strip in shared memory ----

constexpr int G_WARPS = 8, G_THREADS = G_WARPS * WARP;
constexpr bool BOTH = SPLIT == 3 || W_SPLIT == 3;  // the strip's lower halves are needed, too
constexpr int G_PLANE = 4 * COLUMNS + 1;  // pixels of 8 channels of gv; odd, for other banks
constexpr int G_LOW = CHUNK / 8 * G_PLANE * 16;  // bytes from upper to lower halves
// Where there is room for one block alone, the next strip of x comes while it works; of two, one works while one waits.
constexpr bool AHEAD = G_BLOCKS == 1;
constexpr int HALVES = SPLIT == 3 ? 2 : 1;  // upper and lower ones of the weights
constexpr int X_ROWS = 6, X_PIXELS = X_ROWS * COLUMNS, X_LOW = X_PIXELS * 16;

struct Strip {
    uint4 gv[(BOTH ? 2 : 1) * CHUNK / 8 * G_PLANE];  // two columns of zeros, and 128 of gv, four times
    uint4 x[(BOTH ? 2 : 1) * X_PIXELS];  // all that these were made from
    uint4 weight[HALVES][CHUNK / 16][5][WARP];  // as the product for v takes them
    uint2 weight_of_x[HALVES][TAPS][CHUNK / 16][WARP];  // as that for gx does
    float raw[AHEAD ? IN * X_ROWS * RAW : 4];  // x as it comes
    float4 of_channel[CHUNK];  // gv = v * x + y, and gm * z where the maximum is; w: many times v's error
    float up[CHUNK], largest[CHUNK], magnitude[CHUNK];  // of the weights: scale, largest, sum of magnitudes ...
    float whole[CHUNK];  // ... and sum
};
static_assert(sizeof(Strip) <= (G_BLOCKS == 1 ? 227 : 113) * 1024, "a block has so much shared memory");

// Which part of an image is swept: `strips` of 4 rows in `parts`, `across` next to each other.
struct Sweep {
    int strips, parts, across, units;
};

#ifdef TENSOR_CORES
// d = a * b
__device__ __forceinline__ void mma16_first(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
}

__device__ __forceinline__ void fragments(uint32_t (&m)[4], uint32_t at) { fragments(m[0], m[1], m[2], m[3], at); }
__device__ __forceinline__ void transposed(uint32_t (&m)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(at));
}

// 6 rows of 8 pixels: at the shifts 0 and 1 side by side; at shift 2 each row and the one below, and the rows 2 to 5.
struct Patch {
    uint32_t two[6][2], third[4][2], last[4];

    __device__ __forceinline__ void load(uint32_t pair, uint32_t single) {
#pragma unroll
        for (int r = 0; r < 6; r += 2) {
            fragments(two[r][0], two[r][1], two[r + 1][0], two[r + 1][1], pair + r * COLUMNS * 16);
        }
        fragments(third[0][0], third[0][1], third[2][0], third[2][1], single);
        fragments(third[1][0], third[1][1], third[3][0], third[3][1], single + COLUMNS * 16);
        fragments(last, single + 2 * COLUMNS * 16);
    }
};

// acc[row] (+)= w * pixels for 4 rows of 8 pixels. For each row in the same order, so that equal pixels give equal
// sums: of equal ones the first is the maximum.
template <bool FIRST>
__device__ __forceinline__ void product(const uint32_t (&w)[5][4], const Patch& b, float (&acc)[4][4]) {
#pragma unroll
    for (int k = 0; k < 3; ++k) {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            if (FIRST && k == 0)
                mma16_first(acc[r], w[k], b.two[r + k][0], b.two[r + k][1]);
            else
                mma16(acc[r], w[k], b.two[r + k][0], b.two[r + k][1]);
        }
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) mma16(acc[r], w[3], b.third[r][0], b.third[r][1]);
#pragma unroll
    for (int r = 0; r < 4; ++r) mma8(acc[r], w[4][0], w[4][1], b.last[r]);
}
#endif
