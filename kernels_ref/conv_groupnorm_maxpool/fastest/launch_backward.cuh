// What the tensor cores' kernels need for a shape; fast: whether they can take it.
struct Plan {
    bool fast;
    int64_t windows, tiles, gm;  // elements of what forward and backward leave for their later kernels
    int64_t kept, of_forward, of_backward;  // floats: of what forward leaves for backward; of workspace
    int64_t parts;  // moments a channel
    int blocks;  // of gradient_kernel
    Shape s;
    Sweep sweep;
};

static Plan plan(const Sizes& of, int64_t pool) {
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    Plan p = {};
    if (N == 0 || C == 0 || C > IN || OC > CHUNK || KH != 3 || KW != 3 || pool != 4) return p;
    const Resident on = resident();
    if (on.forward == 0 || on.backward == 0) return p;
    const int64_t OH = H - 2, OW = W - 2, PH = OH / 4;
    const int64_t tiles_x = (OW + WIDE - 1) / WIDE, tiles_y = (OH + ROWS - 1) / ROWS, of_image = tiles_x * tiles_y;
    const int64_t strips = (OH + 3) / 4, across = W <= WIDE ? 1 : (W - 4 + STEP - 1) / STEP;
    p.tiles = N * of_image;
    if ((IN + 1) * H * W >= INT_MAX) return p;
    if (p.tiles >= INT_MAX || N * strips * across >= INT_MAX || N * OC >= INT_MAX) return p;
    if (PH * across * STRIP_WINDOWS >= INT_MAX || PH * tiles_x * (WIDE / 4) >= INT_MAX) return p;
    p.fast = true;
    const int64_t blocks = std::min(p.tiles, on.forward);
    p.s = {(int)C, (int)H, (int)W, (int)OC, (int)OH, (int)OW, (int)tiles_x, (int)tiles_y, (int)p.tiles, (int)blocks};
    p.parts = std::min(of_image, of_image * blocks / p.tiles + 2) * (WARPS * TALL * 16 / CHUNK);
    p.windows = N * OC * PH * tiles_x * (WIDE / 4);
    p.kept = p.windows + 2 * N * groups + N * OC + 2 * p.tiles;
    p.of_forward = N * OC * 3 * p.parts;
    p.gm = N * OC * PH * across * STRIP_WINDOWS;
    // An image is cut into as many parts as keep the GPU busiest; every part but the first makes one strip twice.
    int64_t parts = 1, best = INT64_MAX;
    for (int64_t i = 1; i <= strips; ++i) {
        const int64_t rounds = (N * across * i + on.backward - 1) / on.backward;
        const int64_t cost = rounds * ((strips + i - 1) / i + (i > 1));
        if (cost < best) best = cost, parts = i;
    }
    const int64_t units = N * across * parts;
    p.sweep = {(int)strips, (int)parts, (int)across, (int)units};
    p.blocks = std::min(units, on.backward);
    p.of_backward = p.gm + 4 * N * groups + 2 * N * OC + CHUNK + (int64_t)p.blocks * TAPS * CHUNK * IN;
    return p;
}

bool conv_groupnorm_maxpool_fast(const Sizes& of, int64_t pool, int64_t* floats) {
    const Plan p = plan(of, pool);
    floats[0] = p.kept, floats[1] = p.of_forward, floats[2] = p.of_backward;
    return p.fast;
}

const char* conv_groupnorm_maxpool_fast_forward(const Tensors& t, const Sizes& of, const Pooling& pool, double eps,
                                                void* stream_of_torch) {
    const int64_t N = of.N, OC = of.OC, groups = of.groups;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const Plan p = plan(of, 4);
    float *windows = t.kept, *means = windows + p.windows, *deviations = means + 2 * N * groups;
    float* largest = deviations + N * OC;
    Moments* moments = reinterpret_cast<Moments*>(t.workspace);
    statistics_kernel<SPLIT, TALL, ROWS, WARPS, BLOCKS, true>
        <<<p.s.blocks, WARPS * WARP, tile_bytes(SPLIT, ROWS), stream>>>(
            t.x, t.conv_weight, t.conv_bias, t.gn_weight, t.scale, windows, moments, largest, p.parts, p.s);
    finish_kernel<<<N * groups, THREADS, 0, stream>>>(
        windows, moments, t.gn_weight, t.gn_bias, t.scale, t.x, t.conv_weight, t.conv_bias, largest, t.y,
        reinterpret_cast<float2*>(means), deviations, OC / groups, p.parts, WARPS * TALL * 16 / CHUNK, p.s, eps,
        pool.clamp_min, pool.clamp_max);
    return message();
}

const char* conv_groupnorm_maxpool_fast_backward(const Tensors& t, const Sizes& of, const Pooling& pool,
                                                 void* stream_of_torch) {
    const int64_t N = of.N, OC = of.OC, groups = of.groups;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const Plan p = plan(of, 4);
    const float *windows = t.kept, *means = windows + p.windows, *deviations = means + 2 * N * groups;
    const float* largest = deviations + N * OC;
    const float2* of_groups = reinterpret_cast<const float2*>(means);
    float *gm = t.workspace, *terms = gm + p.gm, *sums = terms + 4 * N * groups, *of_middles = sums + 2 * N * OC;
    float* weights = of_middles + CHUNK;
    float4* ab = reinterpret_cast<float4*>(terms);
    float2* of_planes = reinterpret_cast<float2*>(sums);
    window_sums_kernel<<<N * groups, THREADS, 0, stream>>>(
        t.gy, windows, of_groups, t.gn_weight, t.gn_bias, t.scale, t.x, t.conv_weight, t.conv_bias, largest, gm,
        of_planes, ab, OC / groups, p.sweep.across, p.s, pool.clamp_min, pool.clamp_max);
    channels_kernel<<<OC, WARP, 0, stream>>>(of_planes, ab, of_groups, deviations, t.gn_weight, t.gn_bias, t.scale,
                                             t.ggn_weight, t.ggn_bias, t.gscale, t.gconv_bias, of_middles, N,
                                             OC / groups, p.s);
    if (t.gx != nullptr || t.gconv_weight != nullptr) {
        gradient_kernel<<<p.blocks, G_THREADS, sizeof(Strip), stream>>>(
            t.x, t.conv_weight, t.conv_bias, t.gn_weight, t.scale, of_groups, ab, largest, gm, t.gx,
            t.gconv_weight == nullptr ? nullptr : weights, OC / groups, p.sweep, p.s);
    }
    if (t.gconv_weight != nullptr) {
        weight_kernel<<<TAPS * CHUNK * IN / (THREADS / WARP), THREADS, 0, stream>>>(weights, of_middles, t.gconv_weight,
                                                                                    p.blocks, p.s);
    }
    return message();
}

// ---- launches of the general kernels ----

static int grid_for(int64_t threads) { return (threads + THREADS - 1) / THREADS; }

const char* conv_groupnorm_maxpool_general_forward(const Tensors& t, const Sizes& of, const Pooling& pooling,
                                                   double eps, void* stream_of_torch) {
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    const int64_t pool = pooling.size;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const int64_t OH = H - KH + 1, OW = W - KW + 1, PH = OH / pool, PW = OW / pool;
    const int64_t elements = N * OC * OH * OW, windows = N * OC * PH * PW;
    if ((elements + THREADS - 1) / THREADS > INT_MAX) return "more elements than a grid has threads";
    general::conv2d_kernel<<<grid_for(elements), THREADS, 0, stream>>>(t.x, t.conv_weight, t.conv_bias, t.v, elements,
                                                                       C, H, W, OC, KH, KW, OH, OW);
    general::group_statistics_kernel<<<N * groups, THREADS, 0, stream>>>(t.v, t.mean, t.rstd, OC / groups * OH * OW,
                                                                         eps);
    general::norm_scale_maxpool_clamp_kernel<<<grid_for(windows), THREADS, 0, stream>>>(
        t.v, t.mean, t.rstd, t.gn_weight, t.gn_bias, t.scale, t.y, t.at, windows, OC, OC / groups, OH, OW, pool, PH, PW,
        pooling.clamp_min, pooling.clamp_max);
    return message();
}

// gv, sums, means, parts of the weight's gradient.
int64_t conv_groupnorm_maxpool_general_workspace(const Sizes& of) {
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    return N * OC * (H - KH + 1) * (W - KW + 1) + 3 * N * OC + 2 * N * groups +
           std::min<int64_t>(N, general::MAX_GRID_Y) * OC * C * KH * KW;
}

const char* conv_groupnorm_maxpool_general_backward(const Tensors& t, const Sizes& of, const Pooling& pooling,
                                                    void* stream_of_torch) {
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    const int64_t pool = pooling.size;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const int64_t OH = H - KH + 1, OW = W - KW + 1, PH = OH / pool, PW = OW / pool, each = OC / groups;
    const int64_t of_weight = OC * C * KH * KW;
    if ((N * C * H * W + THREADS - 1) / THREADS > INT_MAX) return "more elements than a grid has threads";
    if ((of_weight * WARP + THREADS - 1) / THREADS > INT_MAX) return "more weights than a grid has warps";
    float *gv = t.workspace, *plain = gv + N * OC * OH * OW, *weighted = plain + N * OC, *total = weighted + N * OC;
    float *a = total + N * OC, *b = a + N * groups, *parts = b + N * groups;
    general::plane_sums_kernel<<<N * OC, THREADS, 0, stream>>>(t.gy, t.at, t.v, t.mean, t.rstd, plain, weighted, each,
                                                               OH, OW, pool, PH, PW);
    general::group_means_kernel<<<grid_for(N * groups), THREADS, 0, stream>>>(plain, weighted, t.gn_weight, t.scale, a,
                                                                              b, N * groups, OC, each, OH * OW);
    general::gv_kernel<<<N * OC, THREADS, 0, stream>>>(t.gy, t.at, t.v, t.mean, t.rstd, t.gn_weight, t.scale, a, b, gv,
                                                       total, OC, each, OH, OW, pool, PH, PW);
    general::channels_kernel<<<grid_for(OC), THREADS, 0, stream>>>(plain, weighted, t.gn_weight, t.gn_bias, t.scale,
                                                                   t.ggn_weight, t.ggn_bias, t.gscale, N, OC);
    general::images_kernel<<<grid_for(OC), THREADS, 0, stream>>>(total, t.gconv_bias, N, OC);
    if (t.gx != nullptr) {
        const int64_t elements = N * C * H * W;
        general::gx_kernel<<<grid_for(elements), THREADS, 0, stream>>>(gv, t.conv_weight, t.gx, elements, C, H, W, OC,
                                                                       KH, KW, OH, OW);
    }
    if (t.gconv_weight != nullptr) {
        const int64_t rows = std::min<int64_t>(N, general::MAX_GRID_Y);
        general::weight_parts_kernel<<<dim3(grid_for(of_weight * WARP), rows), THREADS, 0, stream>>>(
            gv, t.x, parts, N, of_weight, C, H, W, OC, KH, KW, OH, OW);
        general::images_kernel<<<grid_for(of_weight), THREADS, 0, stream>>>(parts, t.gconv_weight, rows, of_weight);
    }
    return message();
}
