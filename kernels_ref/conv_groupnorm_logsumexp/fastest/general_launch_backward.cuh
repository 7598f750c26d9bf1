namespace general {

static int64_t blocks_for(int64_t threads) { return (threads + THREADS - 1) / THREADS; }

// Where the arrays of general_backward_launch's workspace begin.
struct Plan {
    int64_t rows, plain, weighted, a, b, total, gv, parts, floats;
};

static Plan plan(const Sizes& of) {
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    Plan p = {};
    p.rows = std::min(N, MAX_GRID_Y);
    p.weighted = p.plain + N * OC;
    p.a = p.weighted + N * OC;
    p.b = p.a + N * groups;
    p.total = p.b + N * groups;
    p.gv = p.total + N * OC;
    p.parts = p.gv + N * OC * (H - KH + 1) * (W - KW + 1);
    p.floats = p.parts + p.rows * OC * C * KH * KW;
    return p;
}

}  // namespace general

const char* general_launch(const Tensors& t, const Sizes& of, double eps, void* stream_of_torch) {
    using namespace general;
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const int64_t OH = H - KH + 1, OW = W - KW + 1, pixels = OH * OW, total = N * OC * pixels;
    float *mean = t.means, *rstd = t.means + N * groups;
    if (blocks_for(total) > INT_MAX || N * OC > INT_MAX) return "more elements than a grid has threads";
    conv2d_kernel<<<blocks_for(total), THREADS, 0, stream>>>(t.x, t.conv_weight, t.conv_bias, t.v, total, C, H, W, OC,
                                                             KH, KW, OH, OW);
    group_statistics_kernel<<<N * groups, THREADS, 0, stream>>>(t.v, mean, rstd, total / (N * groups), eps);
    norm_residual_logsumexp_kernel<<<blocks_for(N * pixels), THREADS, 0, stream>>>(
        t.v, mean, rstd, t.gn_weight, t.gn_bias, t.y, N * pixels, OC, OC / groups, pixels);
    return message();
}

int64_t general_backward_workspace(const Sizes& of) { return general::plan(of).floats; }

const char* general_backward_launch(const Tensors& t, const Sizes& of, void* stream_of_torch) {
    using namespace general;
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const int64_t OH = H - KH + 1, OW = W - KW + 1, pixels = OH * OW, weights = OC * C * KH * KW;
    const general::Plan p = general::plan(of);
    float *plain = t.workspace + p.plain, *weighted = t.workspace + p.weighted, *a = t.workspace + p.a,
          *b = t.workspace + p.b;
    float *total = t.workspace + p.total, *gv = t.workspace + p.gv, *parts = t.workspace + p.parts;
    const float *mean = t.means, *rstd = t.means + N * groups;
    if (blocks_for(N * C * H * W) > INT_MAX || blocks_for(weights * WARP) > INT_MAX) {
        return "more elements than a grid has threads";
    }
    plane_sums_kernel<<<N * OC, THREADS, 0, stream>>>(t.gy, t.y, t.v, mean, rstd, t.gn_weight, t.gn_bias, plain,
                                                      weighted, OC, OC / groups, pixels);
    images_kernel<<<blocks_for(OC), THREADS, 0, stream>>>(plain, t.ggn_bias, N, OC);
    images_kernel<<<blocks_for(OC), THREADS, 0, stream>>>(weighted, t.ggn_weight, N, OC);
    if (t.gx != nullptr || t.gweight != nullptr || t.gconv_bias != nullptr) {
        group_means_kernel<<<blocks_for(N * groups), THREADS, 0, stream>>>(plain, weighted, t.gn_weight, a, b,
                                                                           N * groups, OC, OC / groups, pixels);
        gv_kernel<<<N * OC, THREADS, 0, stream>>>(t.gy, t.y, t.v, mean, rstd, t.gn_weight, t.gn_bias, a, b, gv, total,
                                                  OC, OC / groups, pixels);
    }
    if (t.gconv_bias != nullptr) images_kernel<<<blocks_for(OC), THREADS, 0, stream>>>(total, t.gconv_bias, N, OC);
    if (t.gx != nullptr) {
        gx_kernel<<<blocks_for(N * C * H * W), THREADS, 0, stream>>>(gv, t.conv_weight, t.gx, N * C * H * W, C, H, W,
                                                                     OC, KH, KW, OH, OW);
    }
    if (t.gweight != nullptr) {
        weight_parts_kernel<<<dim3(blocks_for(weights * WARP), p.rows), THREADS, 0, stream>>>(
            gv, t.x, parts, N, weights, C, H, W, OC, KH, KW, OH, OW);
        images_kernel<<<blocks_for(weights), THREADS, 0, stream>>>(parts, t.gweight, p.rows, weights);
    }
    return message();
}
