#include "arguments.h"
#include "../../shared/launch_result.cuh"

static int64_t parts_of(int64_t length) { return (length + PART - 1) / PART; }

int64_t scratch_bytes(int64_t length) {
    return parts_of(length) > INT_MAX ? -1 : (parts_of(length) + 1) * (int64_t)sizeof(Word);  // and the counter
}

const char* launch(const float* x, float* y, void* scratch, int64_t length, void* on_stream) {
    const cudaStream_t stream = static_cast<cudaStream_t>(on_stream);
    const int64_t parts = parts_of(length);
    const cudaError_t error = cudaMemsetAsync(scratch, 0, scratch_bytes(length), stream);  // 0 is EMPTY
    if (error != cudaSuccess) return message(error);

    Word* const published = static_cast<Word*>(scratch);
    const bool aligned = reinterpret_cast<uintptr_t>(x) % 16 == 0 && reinterpret_cast<uintptr_t>(y) % 16 == 0;
    const auto kernel = aligned ? scan_kernel<true> : scan_kernel<false>;
    kernel<<<parts, THREADS + WARP, 0, stream>>>(x, y, published, published + parts, length);
    return message();
}
