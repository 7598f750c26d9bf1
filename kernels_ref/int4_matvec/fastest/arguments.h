// The interface of the CUDA source, which includes no header of torch. Tensors are contiguous.

struct Sizes {
    int batch, rows, words, groups, words_per_group;
};

// x (batch, 8 words) and scales (rows, groups) are halves, packed is (rows, words), y (batch, rows) is halves. Returns
// what went wrong, or nullptr.
const char* launch(const void* x, const void* packed, const void* scales, void* y, const Sizes& of, void* on_stream);
