#include <algorithm>
#include <climits>
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#if !BACKWARD
#include <type_traits>
#endif

// ---- tensor cores: 8 channels, a 3x3 kernel, 32 channels ----

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define TENSOR_CORES
#endif

#if !TF32
constexpr int SPLIT = 3;                        // products of halves for one of floats
#else
constexpr int SPLIT = 1;                        // products of halves for one of floats
#endif
constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffff;
constexpr int IN = 8, OUT = 32, TAPS = 9;         // channels of x and of y, weights of one of both
constexpr int WARPS = 8, THREADS = WARPS * WARP;  // a block
constexpr int TALL = 1, WIDE = 4;               // at a time a warp makes TALL * 16 channels of WIDE * 8 pixels
constexpr int ROWS = 2, COLUMNS = 254;            // pixels that a block makes at a time: a strip ...
constexpr int X_ROWS = ROWS + 2, X_ROW = 256;     // ... and those of x that it reads
constexpr int SEGMENTS = WARPS * TALL * 16 / OUT; // of a strip: what a warp makes ...
constexpr int SEGMENT = ROWS * X_ROW / SEGMENTS;  // ... with so many pixels in a row
#if !BACKWARD
constexpr int UNROLL = SPLIT == 3 ? 4 : 1;        // steps through a segment that the compiler may mix, where it pays
#endif
constexpr int QUAD = 4, QUADS = OUT / QUAD;       // channels that are told of together
constexpr int MINE = OUT / WARPS;                 // channels that a warp normalises
constexpr int HEIGHT = X_ROWS * X_ROW / THREADS;  // pixels of x that a thread brings
// Bytes from the upper to the lower halves: all pixels of x, and two that are only read for results that nobody keeps.
constexpr int LOW = (X_ROWS * X_ROW + 2) * IN * 2;
// Floats from a row of sigmoids to the next, and from a channel to the next: 8 channels by 4 pairs lie in all banks.
constexpr int S_ROW = 260, S_CHANNEL = ROWS * S_ROW;
constexpr int VECTORS = 4;                        // float4 of a channel's strip that a lane has
static_assert(VECTORS * WARP * 4 >= ROWS * COLUMNS, "a warp reads a channel's strip in VECTORS steps");

struct Shape {
    int N, H, W, OH, OW, groups, tiles_x, tiles_y;
};

struct Shared {
    uint4 x[2 * LOW / 16];              // 8 halves a pixel: upper, then lower ones; before that, floats as they come
    float sigmoid[OUT * S_CHANNEL];
    float2 moments[OUT][SEGMENTS];      // mean and squared deviations of a segment's pixels
    float2 line[OUT];                   // factor and offset from a channel's sum to the exponent of its sigmoid
    float warp_max[WARPS];
    float reach;                        // of the weights
};
