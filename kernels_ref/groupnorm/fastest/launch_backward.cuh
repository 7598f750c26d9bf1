int64_t backward_scratch_bytes(const Sizes& of) {
    const auto [N, C, groups, pixels] = of;
    const int64_t sums = N * C * ((pixels + CHUNK_FLOATS - 1) / CHUNK_FLOATS);  // a part has several chunks
    if (N * C * ((pixels + PART - 1) / PART) > INT_MAX || N * ((pixels + CHUNK_FLOATS - 1) / CHUNK_FLOATS) > INT_MAX ||
        N * groups + C > INT_MAX) {
        return -1;
    }
    return ONCE_BYTES + (sums + N * groups) * sizeof(float2);
}

const char* launch_backward(const Tensors& t, const Sizes& of, void* on_stream) {
    const auto [N, C, groups, pixels] = of;
    const cudaStream_t stream = static_cast<cudaStream_t>(on_stream);
    const float2* mean_rstd = reinterpret_cast<const float2*>(t.means);
    float2* of_groups = reinterpret_cast<float2*>(static_cast<char*>(t.scratch) + ONCE_BYTES);
    float2* sums = of_groups + N * groups;
    if (!t.gx && !t.gweight) return nullptr;
    const bool once = t.gx && launch_backward_once(t, of, sums, stream);
    const bool fours = in_fours(pixels, t.x, t.gy, t.gx), gx_follows = t.gx && !once;
    const int64_t each = once ? CHUNK_FLOATS : PART, parts = (pixels + each - 1) / each;
    const int64_t for_channels = t.gweight ? C : 0, blocks = for_channels + (gx_follows ? N * groups : 0);
    if (!once) {
        const auto kernel = fours ? part_sums_kernel<4> : part_sums_kernel<1>;
        kernel<<<N * C * parts, THREADS, 0, stream>>>(t.x, t.gy, mean_rstd, sums, C / groups, pixels, parts);
    }
    if (blocks > 0) {
        totals_kernel<<<blocks, THREADS, 0, stream>>>(sums, t.weight, t.gweight, t.gbias, of_groups, N, C, C / groups,
                                                      parts, pixels, for_channels);
    }
    if (gx_follows) {
        const auto kernel = fours ? gx_kernel<4> : gx_kernel<1>;
        kernel<<<N * C * parts, THREADS, 0, stream>>>(t.x, t.gy, t.weight, mean_rstd, of_groups, t.gx, C, C / groups,
                                                      pixels, parts);
    }
    return message();
}
