#include "arguments.h"
#include "../../shared/launch_result.cuh"

// Returns whether the current GPU has the instructions of Ampere and later ones.
static bool is_ampere() {
#ifdef __SIMT__
    return true;
#else
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 8;
#endif
}

// Returns whether the kernels for the tensor cores take heads of this size on this GPU.
static bool takes_tiles(const Sizes& of) { return of.depth % 8 == 0 && is_ampere(); }

// Returns whether the kernels for Hopper's tensor cores take heads of this size on this GPU.
static bool takes_groups(const Sizes& of) {
#if defined(__SIMT__) || defined(HOPPER)
    int device = 0, major = 0;
    return (of.depth == 64 || of.depth == 128) && cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major == 9;
#else
    return false;
#endif
}

template <int D>
static const char* launch_groups(const Tensors& t, const Sizes& of, bool causal, cudaStream_t stream) {
    const __half *q = static_cast<const __half*>(t.q), *k = static_cast<const __half*>(t.k),
                 *v = static_cast<const __half*>(t.v);
    const int64_t tiles = (of.length + GROUP_QUERIES<D> - 1) / GROUP_QUERIES<D>;
    if (tiles * of.heads > INT_MAX) return "too many queries for one launch";
    const float scale = 1.44269504088896341f / std::sqrt((float)D);
    const auto kernel = groups_kernel<D>;
    constexpr int bytes = GROUP_STAGES * GROUP_STAGE_BYTES<D>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
#if BACKWARD
    kernel<<<tiles * of.heads, GROUP_THREADS<D>, bytes, stream>>>(q, k, v, static_cast<__half*>(t.out), t.lse,
                                                                  of.length, (int)tiles, scale, causal);
#else
    kernel<<<tiles * of.heads, GROUP_THREADS<D>, bytes, stream>>>(q, k, v, static_cast<__half*>(t.out), of.length,
                                                                  (int)tiles, scale, causal);
#endif
    return message();
}

template <int D>
static const char* launch_for(const Tensors& t, const Sizes& of, bool causal, cudaStream_t stream) {
    const auto [heads, length, depth] = of;
    const __half *q = static_cast<const __half*>(t.q), *k = static_cast<const __half*>(t.k),
                 *v = static_cast<const __half*>(t.v);
    __half* const out = static_cast<__half*>(t.out);
    const float scale = 1.0f / std::sqrt((float)depth);
    if (takes_tiles(of)) {
        const int64_t tiles = (length + QUERIES<D> - 1) / QUERIES<D>;
        if (tiles * heads > INT_MAX) return "too many queries for one launch";
        const auto kernel = tiles_kernel<D>;
        constexpr int bytes = STAGES * STAGE_BYTES<D>;
        static_assert(bytes <= 48 << 10, "more must be asked for");
        cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
#if BACKWARD
        kernel<<<tiles * heads, THREADS, bytes, stream>>>(q, k, v, out, t.lse, length, depth, (int)tiles,
                                                          scale * 1.44269504088896341f, causal);
#else
        kernel<<<tiles * heads, THREADS, bytes, stream>>>(q, k, v, out, length, depth, (int)tiles,
                                                          scale * 1.44269504088896341f, causal);
#endif
    } else {
        if (heads > 65535) return "more than 65,535 heads: a grid has no more rows";
#if BACKWARD
        const dim3 blocks((length + simple::ROWS - 1) / simple::ROWS, heads);
        simple::attention_kernel<D>
            <<<blocks, simple::ROWS, 0, stream>>>(q, k, v, out, t.lse, length, depth, scale, causal);
#else
        const dim3 blocks((length + simple::QUERIES - 1) / simple::QUERIES, heads);
        simple::attention_kernel<D><<<blocks, simple::THREADS, 0, stream>>>(q, k, v, out, length, depth, scale, causal);
#endif
    }
    return message();
}

const char* launch(const Tensors& t, const Sizes& of, bool causal, void* on_stream) {
    const cudaStream_t stream = static_cast<cudaStream_t>(on_stream);
    if (takes_groups(of))
        return of.depth == 64 ? launch_groups<64>(t, of, causal, stream) : launch_groups<128>(t, of, causal, stream);
    if (of.depth <= 32) return launch_for<32>(t, of, causal, stream);
    if (of.depth <= 64) return launch_for<64>(t, of, causal, stream);
    return launch_for<MOST_DEPTH>(t, of, causal, stream);
}
