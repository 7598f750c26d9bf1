// The interface of the CUDA source, which includes no header of torch. Tensors are contiguous.

struct Tensors {
    const void* x;  // (batch, columns) int8, as weight: both begin at a multiple of 16 bytes
    const float* x_scale;
    const void* weight;
    const float* weight_scale;
    float* y;
};

struct Sizes {
    int batch, rows, columns;
};

// Returns what went wrong, or nullptr.
const char* launch(const Tensors& t, const Sizes& of, void* on_stream);
