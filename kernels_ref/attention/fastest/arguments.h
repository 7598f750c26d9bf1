// The interface of the CUDA source, which includes no header of torch. Tensors are contiguous halves, (heads, length,
// depth), which begin at multiples of 16 bytes.

struct Tensors {
    const void *q, *k, *v;
    void* out;
};

struct Sizes {
    int64_t heads;  // of all images
    int length, depth;
};

constexpr int MOST_DEPTH = 128;

// Returns what went wrong, or nullptr.
const char* launch(const Tensors& t, const Sizes& of, bool causal, void* on_stream);
