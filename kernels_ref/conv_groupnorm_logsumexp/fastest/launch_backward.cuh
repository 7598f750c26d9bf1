int64_t conv_groupnorm_logsumexp_tiles(const Sizes& of) {
    const FastPlan p = fast_plan(1, of.H, of.W);
    return p.tiles_x * p.tiles_y;
}

int64_t conv_groupnorm_logsumexp_workspace(const Sizes& of) {
    return 3 * of.N * of.OC * fast_plan(of.N, of.H, of.W).parts;
}

const char* conv_groupnorm_logsumexp_launch(const Tensors& t, const Sizes& of, double eps, void* stream_of_torch) {
    const FastPlan p = fast_plan(of.N, of.H, of.W);
    if (p.last_tiles > INT_MAX) return "the output has more than 2^31 - 1 tiles";
    return launch_fast(t, of, p, reinterpret_cast<float2*>(t.means), reinterpret_cast<Moments*>(t.workspace), eps,
                       static_cast<cudaStream_t>(stream_of_torch));
}

// Floats that conv_groupnorm_logsumexp_backward_launch needs for itself, and where its arrays begin.
struct BackwardPlan {
    Shape sums, last;  // tiles of the first pass; strips and parts of them of the second
    int64_t count;  // parts a channel
    int64_t images, factors, parts, plain, weighted, terms, weights, biases, floats;
};

static BackwardPlan backward_plan(const Sizes& of) {
    const int64_t N = of.N, C = of.C, H = of.H, W = of.W, OC = of.OC;
    BackwardPlan p = {};
    const int64_t multiprocessors = std::max(resident().multiprocessors, 1), OH = H - 2, OW = W - 2;
    const Shape s = {(int)C, (int)H, (int)W, (int)OC, (int)OH, (int)OW, 0, 0, 0, 0};
    p.sums = p.last = s;
    p.sums.tiles_x = (OW + WIDE - 1) / WIDE;
    p.sums.tiles_y = (OH + SUM_ROWS - 1) / SUM_ROWS;
    p.sums.tiles = N * p.sums.tiles_x * p.sums.tiles_y;
    p.sums.blocks = std::min<int64_t>(p.sums.tiles, SUM_BLOCKS * multiprocessors);
    p.last.tiles_x = W <= WIDE ? 1 : 1 + (W - WIDE + STRIP - 1) / STRIP;
    const int64_t strips = N * p.last.tiles_x;  // cut while multiprocessors are idle and parts have 8 rows
    p.last.tiles_y = std::max<int64_t>(1, std::min(multiprocessors / strips, OH / 8));
    p.last.tiles = strips * p.last.tiles_y;
    p.last.blocks = std::min<int64_t>(p.last.tiles, multiprocessors);
    p.count = (int64_t)p.sums.tiles_x * p.sums.tiles_y * SUM_MAKERS;
    const auto after = [](int64_t begin, int64_t floats) { return begin + (floats + 3) / 4 * 4; };  // of 16 bytes
    p.images = after(0, sizeof(Prepared) / 4);
    p.factors = after(p.images, N * sizeof(Image) / 4);
    p.parts = after(p.factors, N * OH * OW);
    p.plain = after(p.parts, N * OC * p.count * 2);
    p.weighted = after(p.plain, N * OC);
    p.terms = after(p.weighted, N * OC);
    p.weights = after(p.terms, N * of.groups * 2);
    p.biases = after(p.weights, p.last.blocks * OC * C * TAPS);
    p.floats = after(p.biases, (int64_t)p.last.tiles * MAKERS * CHUNK);
    return p;
}

int64_t conv_groupnorm_logsumexp_backward_workspace(const Sizes& of) { return backward_plan(of).floats; }

const char* conv_groupnorm_logsumexp_backward_launch(const Tensors& t, const Sizes& of, void* stream_of_torch) {
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const int64_t N = of.N, C = of.C, OC = of.OC, groups = of.groups;
    const BackwardPlan p = backward_plan(of);
    const int64_t of_image = conv_groupnorm_logsumexp_tiles(of);
    if (N * p.count > INT_MAX || (int64_t)N * p.last.tiles_x > INT_MAX) return "more than 2^31 - 1 tiles";
    Prepared* prepared = reinterpret_cast<Prepared*>(t.workspace);
    Image* images = reinterpret_cast<Image*>(t.workspace + p.images);
    float2* parts = reinterpret_cast<float2*>(t.workspace + p.parts);
    float2* terms = reinterpret_cast<float2*>(t.workspace + p.terms);
    float *factors = t.workspace + p.factors, *plain = t.workspace + p.plain, *weighted = t.workspace + p.weighted;
    const float2* statistics = reinterpret_cast<const float2*>(t.means);
    setup_kernel<<<PREPARERS + N, THREADS, 0, stream>>>(t.x, t.conv_weight, t.gy, statistics, t.largest, of_image,
                                                        prepared, images, groups, p.sums);
    for (const auto pass : {sums_kernel<true>, sums_kernel<false>}) {
        pass<<<p.sums.blocks, SUM_WARPS * WARP, sizeof(SumsShared), stream>>>(
            t.x, t.y, t.gy, t.conv_weight, t.conv_bias, t.gn_weight, t.gn_bias, statistics, images, prepared, factors,
            parts, OC / groups, p.sums);
    }
    terms_kernel<<<N, THREADS, 0, stream>>>(parts, t.gn_weight, statistics, images, plain, weighted, terms, p.count,
                                            OC / groups, p.sums);
    AllColumns all = {{{plain, t.ggn_bias, N, (int)OC, (int)OC}, {weighted, t.ggn_weight, N, (int)OC, (int)OC}}};
    if (t.gx != nullptr || t.gweight != nullptr || t.gconv_bias != nullptr) {
        float *weights = t.workspace + p.weights, *biases = t.workspace + p.biases;
        const Arrays arrays = {t.x,           t.y,
                               t.gy,          factors,
                               t.conv_weight, t.conv_bias,
                               t.gn_weight,   t.gn_bias,
                               statistics,    terms,
                               images,        prepared,
                               t.gx,          t.gweight ? weights : nullptr,
                               biases,        (int)(OC / groups)};
        for (const auto pass : {gradients_kernel<false>, gradients_kernel<true>}) {
            pass<<<p.last.blocks, LAST_THREADS, sizeof(LastShared), stream>>>(arrays, p.last);
        }
        const int of_weight = OC * C * TAPS;
        if (t.gconv_bias) all.of[2] = {biases, t.gconv_bias, (int64_t)p.last.tiles * MAKERS, (int)OC, CHUNK};
        if (t.gweight) all.of[3] = {weights, t.gweight, p.last.blocks, of_weight, of_weight};
    }
    const int widest = std::max(t.gweight ? OC * C * TAPS : 0, OC);
    columns_kernel<<<dim3((widest + WARP - 1) / WARP, t.gweight ? 4 : t.gconv_bias ? 3 : 2), THREADS, 0, stream>>>(all);
    return message();
}
