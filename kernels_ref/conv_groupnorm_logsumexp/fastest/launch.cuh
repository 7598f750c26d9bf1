struct Plan {
    bool tensor_cores;
    int64_t floats;  // of workspace that a launch needs
    FastPlan fast;
    int64_t parts, tiles_x, tiles_y;  // of step 4's kernels
};

static Plan plan(const Sizes& of) {
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    Plan p = {};
    const int64_t OH = H - KH + 1, OW = W - KW + 1, pixels = OH * OW;
    if (fits(of)) {
        p.fast = fast_plan(N, H, W);
        p.tensor_cores = p.fast.tiles < INT_MAX && p.fast.last_tiles < INT_MAX;
        p.floats = 2 * N * groups + 3 * N * OC * p.fast.parts;
        if (p.tensor_cores) return p;
    }
    p.tiles_x = (OW + general::TILE_X - 1) / general::TILE_X;
    p.tiles_y = (OH + general::TILE_Y - 1) / general::TILE_Y;
    p.parts = p.tiles_x * p.tiles_y * general::WARPS;
    p.floats = N * (OC + 1) * pixels + 3 * N * OC * p.parts + 2 * N * groups;
    return p;
}

int64_t conv_groupnorm_logsumexp_workspace(const Sizes& of) { return plan(of).floats; }

const char* conv_groupnorm_logsumexp_launch(const Tensors& t, const Sizes& of, double eps, void* stream_of_torch) {
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const int64_t OH = H - KH + 1, OW = W - KW + 1, pixels = OH * OW, each = OC / groups;
    const Plan p = plan(of);
    if (p.tensor_cores) {
        Moments* moments = reinterpret_cast<Moments*>(t.workspace + 2 * N * groups);
        return launch_fast(t, of, p.fast, reinterpret_cast<float2*>(t.workspace), moments, eps, stream);
    }
    if (N * p.tiles_x * p.tiles_y > INT_MAX) return "the output has more than 2^31 - 1 tiles";
    const general::Shape s = {(int)C,  (int)H,  (int)W,  (int)OC,        (int)KH,
                              (int)KW, (int)OH, (int)OW, (int)p.tiles_x, (int)p.tiles_y};
    float *v = t.workspace, *top = v + N * OC * pixels, *mean = top + N * pixels, *rstd = mean + N * groups;
    Moments* moments = reinterpret_cast<Moments*>(rstd + N * groups);
    const auto conv2d = KH == 3 && KW == 3 ? general::conv2d_moments_kernel<3> : general::conv2d_moments_kernel<0>;
    conv2d<<<N * p.tiles_y * p.tiles_x, dim3(general::TILE_X, general::WARPS), 0, stream>>>(
        t.x, t.conv_weight, t.conv_bias, v, moments, top, s);
    general::merge_kernel<<<N * groups, THREADS, 0, stream>>>(moments, mean, rstd, each * p.parts, eps);
    // Four neighbours are one float4 only if every plane begins at a multiple of 16 bytes.
    const int64_t vector = pixels % 4 == 0 ? 4 : 1;
    const int64_t blocks_an_image = (pixels + THREADS * vector - 1) / (THREADS * vector);
    if (N * blocks_an_image > INT_MAX) return "the output has more pixels than a grid has threads";
    const auto tail =
        vector == 4 ? general::norm_residual_logsumexp_kernel<4> : general::norm_residual_logsumexp_kernel<1>;
    tail<<<N * blocks_an_image, THREADS, 0, stream>>>(v, top, mean, rstd, t.gn_weight, t.gn_bias, t.y, OC, each, pixels,
                                                      blocks_an_image);
    return message();
}
