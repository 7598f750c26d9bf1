#include "arguments.h"
#include "../../shared/launch_result.cuh"

constexpr int64_t MEMBERS = 160;  // blocks that the kernel which reads once may have, at most
constexpr int64_t KEPT = 128;  // groups whose moments it keeps in global memory
constexpr int64_t ONCE_BYTES = KEPT * MEMBERS * 16;
#if BACKWARD
constexpr int CHUNK = 4096;  // bytes that it loads at a time
constexpr int CHUNK_FLOATS = CHUNK / 4;
#endif

// Starts the kernel that reads once and returns true, or false where it cannot run. Its scratch has ONCE_BYTES.
bool launch_once(const Tensors& t, const Sizes& of, float eps, cudaStream_t stream);
#if BACKWARD
// The same. sums: of gy and of gy * xh, (N, C, chunks of a plane).
bool launch_backward_once(const Tensors& t, const Sizes& of, float2* sums, cudaStream_t stream);
#endif

struct Parts {
    int64_t total, elements, parts, behind, jobs, moments;
};

static Parts parts_of(const Sizes& of) {
    const int64_t total = of.N * of.groups, elements = of.C / of.groups * of.pixels;
    const int64_t parts = (elements + PART - 1) / PART;
    // So many rounds that by then the statistics are there: about as many jobs lie between as run at a time.
    const int64_t behind = std::max<int64_t>(2, 1 + IN_FLIGHT / (2 * parts));
#if BACKWARD
    const int64_t moments = total * parts;
#else
    const int64_t moments = total * (parts + 1);  // the last ones: of whole groups
#endif
    return {total, elements, parts, behind, (total + behind) * 2 * parts, moments};
}

int64_t scratch_bytes(const Sizes& of) {
    const Parts p = parts_of(of);
    if (p.jobs > INT_MAX) return -1;
    const int64_t bytes = p.moments * sizeof(Moments) + (1 + 2 * p.total) * sizeof(int);
    return std::max((bytes + 7) / 8 * 8, ONCE_BYTES);
}

// Four neighbours are one float4 only if they are of one channel and begin at a multiple of 16 bytes.
static bool in_fours(int64_t pixels, const void* one, const void* other, const void* third = nullptr) {
    const uintptr_t ends =
        reinterpret_cast<uintptr_t>(one) | reinterpret_cast<uintptr_t>(other) | reinterpret_cast<uintptr_t>(third);
    return pixels % 4 == 0 && ends % 16 == 0;
}

const char* launch(const Tensors& t, const Sizes& of, float eps, void* on_stream) {
    const cudaStream_t stream = static_cast<cudaStream_t>(on_stream);
    if (launch_once(t, of, eps, stream)) return nullptr;

    const Parts p = parts_of(of);
    Moments* of_part = static_cast<Moments*>(t.scratch);
#if BACKWARD
    float2* statistics = reinterpret_cast<float2*>(t.means);
#else
    Moments* statistics = of_part + p.total * p.parts;
#endif
    int* drawn = reinterpret_cast<int*>(of_part + p.moments);
    const cudaError_t error = cudaMemsetAsync(drawn, 0, (1 + 2 * p.total) * sizeof(int), stream);
    if (error != cudaSuccess) return message(error);

    const auto kernel = in_fours(of.pixels, t.x, t.y) ? groupnorm_kernel<4> : groupnorm_kernel<1>;
    kernel<<<p.jobs, THREADS, 0, stream>>>(t.x, t.weight, t.bias, t.y, of_part, statistics, drawn, drawn + 1,
                                           drawn + 1 + p.total, p.total, of.groups, of.C / of.groups, of.pixels,
                                           p.parts, p.behind, eps);
    return message();
}
