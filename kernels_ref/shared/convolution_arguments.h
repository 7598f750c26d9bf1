// The interface of the CUDA source, which includes no header of torch: that is what makes it quick to compile. Tensors
// are contiguous and hold floats; a launch returns what went wrong, or null.

struct Sizes {
    int64_t N, C, H, W, OC, KH, KW, groups;  // x (N, C, H, W), conv_weight (OC, C, KH, KW)
};
