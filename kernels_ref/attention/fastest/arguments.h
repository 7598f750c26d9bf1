// The interface of the CUDA source, which includes no header of torch. Tensors are contiguous halves, (heads, length,
// depth), which begin at multiples of 16 bytes.

struct Tensors {
    const void *q, *k, *v;
    void* out;
#if BACKWARD
    float* lse;  // (heads, length): the natural logarithm of the sum of each query's exponentials
    const void* go;
    void *gq, *gk, *gv;
    float* scratch;
#endif
};

struct Sizes {
    int64_t heads;  // of all images
    int length, depth;
};

constexpr int MOST_DEPTH = 128;

// Returns what went wrong, or nullptr.
const char* launch(const Tensors& t, const Sizes& of, bool causal, void* on_stream);
#if BACKWARD
int64_t scratch_floats(const Sizes& of);  // of global memory that launch_backward needs for itself
const char* launch_backward(const Tensors& t, const Sizes& of, bool causal, void* on_stream);
#endif
