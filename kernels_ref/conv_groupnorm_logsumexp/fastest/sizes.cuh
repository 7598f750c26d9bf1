#include <algorithm>
#include <climits>
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#if TF32
constexpr int SPLIT = 1;              // products of halves for one of floats
constexpr int TALL = 1, ROWS = 16;    // a warp makes 16 * TALL channels, a block that many rows of pixels ...
constexpr int WARPS = 16, BLOCKS = 1;  // ... with so many warps, and a multiprocessor has so many blocks
#else
constexpr int SPLIT = 3;              // products of halves for one of floats
constexpr int TALL = 2, ROWS = 16;    // a warp makes 16 * TALL channels, a block that many rows of pixels ...
constexpr int WARPS = 8, BLOCKS = 1;  // ... with so many warps, and a multiprocessor has so many blocks
#endif
constexpr int LAST_TALL = 1, LAST_ROWS = 8, LAST_WARPS = 8, LAST_BLOCKS = 2;  // the same of the last kernel
#if BACKWARD
constexpr int WEIGHT_SPLIT = SPLIT;  // the same for conv_weight's gradient
constexpr int SUM_BLOCKS = 2;        // blocks of backward's first pass that a multiprocessor has
#endif
constexpr int MERGERS = 128;  // threads that merge a group's moments
constexpr int THREADS = 256;  // a block of every other kernel
