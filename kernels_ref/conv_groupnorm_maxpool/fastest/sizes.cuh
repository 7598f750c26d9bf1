#include <algorithm>
#include <climits>
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#if TF32
constexpr int SPLIT = 1;  // products of halves for one of floats
#else
constexpr int SPLIT = 3;  // products of halves for one of floats
#endif
#if BACKWARD
constexpr int W_SPLIT = SPLIT;               // ... for the weight's gradient
constexpr int G_OCTETS = 2;                  // pixels of gv that a warp has under way, divided by 32
constexpr int G_BLOCKS = SPLIT == 3 ? 1 : 2;  // of gradient_kernel that a multiprocessor has
#endif
#if TF32
constexpr int TALL = 1, ROWS = 16;     // a warp makes 16 * TALL channels, a block that many rows of pixels ...
constexpr int WARPS = 16, BLOCKS = 1;  // ... with so many warps, and a multiprocessor has so many blocks
#else
constexpr int TALL = 2, ROWS = 16;    // a warp makes 16 * TALL channels, a block that many rows of pixels ...
constexpr int WARPS = 8, BLOCKS = 1;  // ... with so many warps, and a multiprocessor has so many blocks
#endif
constexpr int THREADS = 256;  // a block of every other kernel
