struct Plan {
    bool tensor_cores, stored;  // stored: the convolution's result goes through memory
    int64_t parts, floats;  // moments a channel; floats of workspace that a launch needs
    int64_t tiles_x, tiles_y, blocks;
};

static Plan plan(const Sizes& of, int64_t pool) {
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    Plan p = {};
    const int64_t OH = H - KH + 1, OW = W - KW + 1, PH = OH / pool;
    if (C <= IN && KH == 3 && KW == 3 && pool == 4) {
        const int64_t resident = ::resident().forward;
        p.tiles_x = (OW + WIDE - 1) / WIDE;
        p.tiles_y = (OH + ROWS - 1) / ROWS;
        const int64_t of_image = p.tiles_x * p.tiles_y, tiles = N * of_image;
        if (resident > 0 && tiles < INT_MAX && N * OC < INT_MAX && OC <= 65535 * CHUNK &&
            PH * p.tiles_x * (WIDE / 4) < INT_MAX) {
            p.tensor_cores = true;
            p.blocks = std::min(tiles, resident);
            p.parts = std::min(of_image, of_image * p.blocks / tiles + 2) * (WARPS * TALL * 16 / CHUNK);
            p.floats = N * OC * (PH * p.tiles_x * (WIDE / 4) + 3 * p.parts);
            return p;
        }
    }
    p.tiles_x = (OW + general::TILE_X - 1) / general::TILE_X;
    p.tiles_y = (OH + general::TILE_Y - 1) / general::TILE_Y;
    p.parts = p.tiles_x * p.tiles_y * general::WARPS;
    p.stored = KH != 3 || KW != 3 || (pool != 1 && pool != 2 && pool != 4);
    p.floats = 3 * N * OC * p.parts + 2 * N * groups + (p.stored ? N * OC * OH * OW : 0);
    return p;
}

int64_t conv_groupnorm_maxpool_workspace(const Sizes& of, int64_t pool) { return plan(of, pool).floats; }

const char* conv_groupnorm_maxpool_launch(const Tensors& t, const Sizes& of, const Pooling& pooling, double eps,
                                          void* stream_of_torch) {
    const auto [N, C, H, W, OC, KH, KW, groups] = of;
    const auto [pool, clamp_min, clamp_max] = pooling;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const int64_t OH = H - KH + 1, OW = W - KW + 1, PH = OH / pool, PW = OW / pool;
    const Plan p = plan(of, pool);
    if (p.tensor_cores) {
        const Shape s = {(int)C,         (int)H,         (int)W,
                         (int)OC,        (int)OH,        (int)OW,
                         (int)p.tiles_x, (int)p.tiles_y, (int)(N * p.tiles_x * p.tiles_y),
                         (int)p.blocks};
        Moments* moments = reinterpret_cast<Moments*>(t.workspace + N * OC * PH * p.tiles_x * (WIDE / 4));
        statistics_kernel<SPLIT, TALL, ROWS, WARPS, BLOCKS, true>
            <<<dim3(p.blocks, (OC + CHUNK - 1) / CHUNK), WARPS * WARP, tile_bytes(SPLIT, ROWS), stream>>>(
                t.x, t.conv_weight, t.conv_bias, t.gn_weight, t.scale, t.workspace, moments, p.parts, s);
        finish_kernel<<<N * groups, THREADS, 0, stream>>>(t.workspace, moments, t.gn_weight, t.gn_bias, t.scale, t.y,
                                                          OC / groups, p.parts, WARPS * TALL * 16 / CHUNK, s, eps,
                                                          clamp_min, clamp_max);
    } else {
        if (N * p.tiles_x * p.tiles_y > INT_MAX) return "the output has more than 2^31 - 1 tiles";
        const general::Shape s = {(int)C,  (int)H,  (int)W,  (int)OC,        (int)KH,
                                  (int)KW, (int)OH, (int)OW, (int)p.tiles_x, (int)p.tiles_y};
        Moments* moments = reinterpret_cast<Moments*>(t.workspace);
        float *mean = t.workspace + 3 * N * OC * p.parts, *rstd = mean + N * groups;
        float* v = p.stored ? rstd + N * groups : t.y;
        // Windows that divide a thread's pixels and a warp's are made at once; all others need v.
        const auto kernel = KH != 3 || KW != 3 ? general::conv2d_windows_kernel<0, 0>
                            : pool == 1        ? general::conv2d_windows_kernel<3, 1>
                            : pool == 2        ? general::conv2d_windows_kernel<3, 2>
                            : pool == 4        ? general::conv2d_windows_kernel<3, 4>
                                               : general::conv2d_windows_kernel<3, 0>;
        kernel<<<N * p.tiles_y * p.tiles_x, dim3(general::TILE_X, general::WARPS), 0, stream>>>(
            t.x, t.conv_weight, t.conv_bias, t.gn_weight, t.scale, v, moments, s);
        general::merge_kernel<<<N * groups, THREADS, 0, stream>>>(moments, mean, rstd, OC / groups * p.parts, eps);
        const int64_t total = N * OC * PH * PW, blocks = (total + THREADS - 1) / THREADS;
        if (blocks > INT_MAX) return "the output has more elements than a grid has threads";
        if (p.stored) {
            general::norm_scale_maxpool_clamp_kernel<<<blocks, THREADS, 0, stream>>>(
                v, mean, rstd, t.gn_weight, t.gn_bias, t.scale, t.y, total, OC, OC / groups, OH, OW, pool, PH, PW,
                clamp_min, clamp_max);
        } else {
            general::norm_scale_clamp_kernel<<<N * OC, THREADS, 0, stream>>>(
                t.y, mean, rstd, t.gn_weight, t.gn_bias, t.scale, OC, OC / groups, PH * PW, clamp_min, clamp_max);
        }
    }
    return message();
}
