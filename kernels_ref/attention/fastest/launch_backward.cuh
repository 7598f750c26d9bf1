static int64_t padded(const Sizes& of) { return (of.length + PADDING - 1) / PADDING * PADDING; }

int64_t scratch_floats(const Sizes& of) { return of.heads * padded(of) * 2; }

template <int D>
static const char* launch_backward_for(const Tensors& t, const Sizes& of, bool causal, cudaStream_t stream) {
    const auto [heads, length, depth] = of;
    const __half *q = static_cast<const __half*>(t.q), *k = static_cast<const __half*>(t.k),
                 *v = static_cast<const __half*>(t.v), *out = static_cast<const __half*>(t.out),
                 *go = static_cast<const __half*>(t.go);
    __half *const gq = static_cast<__half*>(t.gq), *const gk = static_cast<__half*>(t.gk),
                  *const gv = static_cast<__half*>(t.gv);
    const float scale = 1.0f / std::sqrt((float)depth);
    if (takes_tiles(of)) {
        const int64_t rows = padded(of), tiles = (length + QUERIES<D> - 1) / QUERIES<D>;
        const int64_t offsets_blocks = rows * (D / 8) / OFFSETS_THREADS * heads;
        if (std::max(offsets_blocks, 2 * tiles * heads) > INT_MAX) return "too many queries for one launch";
        float2* const offsets = reinterpret_cast<float2*>(t.scratch);
        offsets_kernel<D>
            <<<offsets_blocks, OFFSETS_THREADS, 0, stream>>>(out, go, t.lse, offsets, length, depth, (int)rows);

        const Heads all = {q, k, v, go, gq, gk, gv, offsets, length, depth, (int)rows, (int)tiles, scale, causal};
        constexpr int bytes = STAGES * STAGE_BYTES<D> + 2 * TILE<D> * (int)sizeof(float2);
        static_assert(PADDING % TILE<D> == 0, "a tile reads offsets of the next head");
        const auto kernel = gradients_kernel<D>;
        cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        kernel<<<2 * tiles * heads, THREADS, bytes, stream>>>(all);
    } else {
        if (heads > 65535) return "more than 65,535 heads: a grid has no more rows";
        const simple::Heads all = {q, k, v, out, go, gq, gk, gv, t.lse, t.scratch, length, depth, scale, causal};
        const dim3 blocks((length + simple::ROWS - 1) / simple::ROWS, heads);
        simple::query_kernel<D><<<blocks, simple::ROWS, 0, stream>>>(all);
        simple::key_kernel<D><<<blocks, simple::ROWS, 0, stream>>>(all);
        simple::value_kernel<D><<<blocks, simple::ROWS, 0, stream>>>(all);
    }
    return message();
}

const char* launch_backward(const Tensors& t, const Sizes& of, bool causal, void* on_stream) {
    const cudaStream_t stream = static_cast<cudaStream_t>(on_stream);
    if (of.depth <= 32) return launch_backward_for<32>(t, of, causal, stream);
    if (of.depth <= 64) return launch_backward_for<64>(t, of, causal, stream);
    return launch_backward_for<MOST_DEPTH>(t, of, causal, stream);
}
