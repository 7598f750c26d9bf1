// ---- backward's launches ----

struct BackwardPlan {
    enum { IMAGE, TILES, GENERAL } kernels;
    int64_t tiles_x, tiles_y, teams;
    int64_t gradient_blocks, blocks;  // of TILES
    int64_t parts, first, second, terms, largest;  // where arrays begin in the workspace
    int64_t weights, rows, edges, packed, floats;
};

static int64_t aligned(int64_t floats) { return (floats + 3) / 4 * 4; }

static BackwardPlan backward_plan(const Sizes& of, bool sixteens) {
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    BackwardPlan p = {};
    const int64_t OH = H - KH + 1, OW = W - KW + 1;
    if (C == IN && OC == OUT && KH == 3 && KW == 3 && has_tensor_cores()) {
        const int64_t resident = resident_blocks(image_gradients_kernel, sizeof(GradientShared));
        p.tiles_x = (OW + COLUMNS - 1) / COLUMNS;
        p.tiles_y = (OH + ROWS - 1) / ROWS;
        p.teams = std::min(N, resident / p.tiles_y);
        if (sixteens && BLOCKS_WAIT && p.teams > 0 && p.tiles_x == 1 && H % 2 == 0 && W % 2 == 0 && groups <= QUADS) {
            p.kernels = BackwardPlan::IMAGE;
            p.edges = aligned(N * QUADS * p.tiles_y * 2);  // after the parts; both are NOT_YET at first
            p.rows = p.edges + p.teams * p.tiles_y * EDGES * THREADS * 2;
            p.packed = p.rows + p.teams * p.tiles_y * OUT * SUMS;
            p.floats = p.packed + sizeof(Packed) / 4;
            return p;
        }
        if (resident > 0) {
            p.kernels = BackwardPlan::TILES;
            p.gradient_blocks = std::min<int64_t>(N * p.tiles_x * p.tiles_y, 2 * multiprocessors());
            p.blocks =
                std::min<int64_t>(N * ((H + G_TALL - 1) / G_TALL) * ((W + G_WIDE - 1) / G_WIDE), 2 * multiprocessors());
            p.parts = aligned(N * OUT * OH * OW);  // after gv
            p.first = p.parts + N * OUT * p.tiles_x * p.tiles_y * 3;
            p.second = p.first + N * OUT;
            p.terms = p.second + N * OUT;
            p.largest = p.terms + N * groups * 2;
            p.weights = p.largest + N + 1;
            p.floats = p.weights + p.blocks * OUT * IN * TAPS;
            return p;
        }
    }
    p.kernels = BackwardPlan::GENERAL;
    p.tiles_x = (OW + general::TILE_X - 1) / general::TILE_X;
    p.tiles_y = (OH + general::TILE_Y - 1) / general::TILE_Y;
    p.rows = std::min(N, general::MAX_GRID_Y);
    p.terms = aligned(N * OC * OH * OW);  // after v
    p.first = p.terms + N * groups * 2;
    p.second = p.first + N * OC;
    p.weights = p.second + N * OC;
    p.floats = p.weights + p.rows * OC * C * KH * KW;
    return p;
}

int64_t conv_sigmoid_groupnorm_backward_workspace(const Sizes& of, bool sixteens) {
    return backward_plan(of, sixteens).floats;
}

static cudaError_t launch_image(const Tensors& t, const BackwardPlan& p, Shape s, cudaStream_t stream) {
    float* w = t.workspace;
    Packed* packed = reinterpret_cast<Packed*>(w + p.packed);
    unsigned long long* parts = reinterpret_cast<unsigned long long*>(w);
    unsigned long long* edges = reinterpret_cast<unsigned long long*>(w + p.edges);
    int teams = p.teams;
    float* rows = w + p.rows;
    const int64_t blocks = p.teams * p.tiles_y;
    cudaError_t error = cudaMemsetAsync(w, 0xff, p.rows * sizeof(float), stream);
    if (error != cudaSuccess) return error;
    pack_kernel<<<1, THREADS, 0, stream>>>(t.conv_weight, t.conv_bias, t.bias, t.scale, packed);
    // Cooperative: blocks that wait for each other must all be resident.
    Tensors u = t;
    void* arguments[] = {&u.x,   &u.gy,  &u.conv_weight, &u.scale, &u.gn_weight, &u.means, &packed,
                         &parts, &edges, &u.gx,          &rows,    &s,           &teams};
    error = cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(image_gradients_kernel), dim3(blocks),
                                        dim3(THREADS), arguments, sizeof(GradientShared), stream);
    if (error != cudaSuccess) return error;
    finish_kernel<<<OUT, THREADS, 0, stream>>>(rows, blocks, packed, t.conv_weight, t.conv_bias, t.bias, t.scale,
                                               t.gconv_weight, t.gconv_bias, t.gscale, t.ggn_weight, t.ggn_bias);
    return cudaGetLastError();
}

static cudaError_t launch_tiles(const Tensors& t, const BackwardPlan& p, const Shape& s, cudaStream_t stream) {
    const int64_t N = s.N, groups = s.groups;
    float *gv = t.workspace, *first = gv + p.first, *second = gv + p.second;
    float *largest = gv + p.largest, *weights = gv + p.weights;
    const float2* means = reinterpret_cast<const float2*>(t.means);
    Part* parts = reinterpret_cast<Part*>(gv + p.parts);
    float2* terms = reinterpret_cast<float2*>(gv + p.terms);
    constexpr int GX_BYTES = 2 * OUT / 8 * G_PIXELS * 16;
    constexpr int GWEIGHT_BYTES = 2 * OUT / 8 * G_TALL * G_WIDE * 16 + 2 * G_PIXELS * 16;
    static_assert(GWEIGHT_BYTES >= OUT * IN * TAPS * 4, "the sums have room");
    constexpr auto BYTES = cudaFuncAttributeMaxDynamicSharedMemorySize;
    cudaError_t error = cudaFuncSetAttribute(gradient_kernel<false>, BYTES, sizeof(Shared));
    if (error == cudaSuccess) error = cudaFuncSetAttribute(gradient_kernel<true>, BYTES, sizeof(Shared));
    if (error == cudaSuccess) error = cudaFuncSetAttribute(gx_tensor_kernel, BYTES, GX_BYTES);
    if (error == cudaSuccess) error = cudaFuncSetAttribute(gweight_tensor_kernel, BYTES, GWEIGHT_BYTES);
    if (error != cudaSuccess) return error;

    gradient_kernel<false><<<p.gradient_blocks, THREADS, sizeof(Shared), stream>>>(
        t.x, t.gy, t.conv_weight, t.conv_bias, t.bias, t.scale, t.gn_weight, means, nullptr, parts, nullptr, s);
    group_sums_kernel<false><<<N * groups, THREADS, 0, stream>>>(parts, t.gn_weight, first, second, terms, s);
    columns_kernel<<<OUT / WARPS, THREADS, 0, stream>>>(first, t.ggn_bias, N, OUT);
    columns_kernel<<<OUT / WARPS, THREADS, 0, stream>>>(second, t.ggn_weight, N, OUT);
    gradient_kernel<true><<<p.gradient_blocks, THREADS, sizeof(Shared), stream>>>(
        t.x, t.gy, t.conv_weight, t.conv_bias, t.bias, t.scale, t.gn_weight, means, terms, parts, gv, s);
    group_sums_kernel<true><<<N * groups, THREADS, 0, stream>>>(parts, t.gn_weight, first, second, terms, s);
    columns_kernel<<<OUT / WARPS, THREADS, 0, stream>>>(first, t.gconv_bias, N, OUT);
    columns_kernel<<<OUT / WARPS, THREADS, 0, stream>>>(second, t.gscale, N, OUT);
    largest_kernel<<<1, THREADS, 0, stream>>>(terms, t.conv_weight, t.scale, largest, N, groups);
    if (t.gx != nullptr) gx_tensor_kernel<<<p.blocks, THREADS, GX_BYTES, stream>>>(gv, t.conv_weight, largest, t.gx, s);
    if (t.gconv_weight != nullptr) {
        gweight_tensor_kernel<<<p.blocks, THREADS, GWEIGHT_BYTES, stream>>>(gv, t.x, largest, weights, s);
        columns_kernel<<<OUT * IN * TAPS / WARPS, THREADS, 0, stream>>>(weights, t.gconv_weight, p.blocks,
                                                                        OUT * IN * TAPS);
    }
    return cudaGetLastError();
}

static const char* launch_general(const Tensors& t, const BackwardPlan& p, int64_t N, const general::Shape& s,
                                  int64_t groups, cudaStream_t stream) {
    using namespace general;
    const float2* means = reinterpret_cast<const float2*>(t.means);
    const int64_t OC = s.OC, pixels = (int64_t)s.OH * s.OW, weights = OC * s.C * s.KH * s.KW;
    const int64_t elements = N * s.C * s.H * s.W, channels = OC / groups;
    if (elements > (int64_t)INT_MAX * ::THREADS) return "x has more elements than a grid has threads";
    if (weights > (int64_t)INT_MAX * ::WARPS) return "the weight has more elements than a grid has warps";
    if (N * s.tiles_x * s.tiles_y > INT_MAX) return "the output has more than 2^31 - 1 tiles";
    float *v = t.workspace, *first = v + p.first, *second = v + p.second, *parts = v + p.weights;
    float2* terms = reinterpret_cast<float2*>(v + p.terms);
    const auto blocks_for = [](int64_t count, int64_t each) { return (unsigned)((count + each - 1) / each); };
    const auto sum = [&](const float* rows, float* sums, int64_t count, int64_t columns) {
        columns_kernel<<<blocks_for(columns, ::WARPS), ::THREADS, 0, stream>>>(rows, sums, count, columns);
    };
    const auto values = s.KH == 3 && s.KW == 3 ? values_kernel<3> : values_kernel<0>;
    values<<<N * s.tiles_y * s.tiles_x, dim3(TILE_X, general::WARPS), 0, stream>>>(t.x, t.conv_weight, t.conv_bias,
                                                                                   t.bias, v, s);
    plane_sums_kernel<<<N * OC, ::THREADS, 0, stream>>>(t.gy, v, means, t.scale, first, second, OC, channels, pixels);
    group_means_kernel<<<blocks_for(N * groups, ::THREADS), ::THREADS, 0, stream>>>(first, second, t.gn_weight, terms,
                                                                                    N * groups, OC, channels, pixels);
    sum(first, t.ggn_bias, N, OC);
    sum(second, t.ggn_weight, N, OC);
    gv_kernel<<<N * OC, ::THREADS, 0, stream>>>(t.gy, v, means, terms, t.scale, t.gn_weight, first, second, OC,
                                                channels, pixels);
    sum(first, t.gconv_bias, N, OC);
    sum(second, t.gscale, N, OC);
    if (t.gx != nullptr) {
        gx_kernel<<<blocks_for(elements, ::THREADS), ::THREADS, 0, stream>>>(v, t.conv_weight, t.gx, elements, s);
    }
    if (t.gconv_weight != nullptr) {
        weight_parts_kernel<<<dim3(blocks_for(weights, ::WARPS), p.rows), ::THREADS, 0, stream>>>(v, t.x, parts, N,
                                                                                                  weights, s);
        sum(parts, t.gconv_weight, p.rows, weights);
    }
    return message();
}

const char* conv_sigmoid_groupnorm_backward_launch(const Tensors& t, const Sizes& of, bool sixteens,
                                                   void* stream_of_torch) {
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const BackwardPlan p = backward_plan(of, sixteens);
    const int N = of.N, C = of.C, H = of.H, W = of.W, OC = of.OC, KH = of.KH, KW = of.KW, groups = of.groups;
    const int OH = H - KH + 1, OW = W - KW + 1, tiles_x = p.tiles_x, tiles_y = p.tiles_y;
    const Shape s = {N, H, W, OH, OW, groups, tiles_x, tiles_y};
    if (p.kernels == BackwardPlan::GENERAL) {
        return launch_general(t, p, N, {C, H, W, OC, KH, KW, OH, OW, tiles_x, tiles_y}, groups, stream);
    }
    return message(p.kernels == BackwardPlan::IMAGE ? launch_image(t, p, s, stream) : launch_tiles(t, p, s, stream));
}
