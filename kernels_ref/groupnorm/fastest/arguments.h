// The interface of the CUDA sources, which include no header of torch. Tensors are contiguous; a launch returns what
// went wrong, or nullptr.

struct Sizes {
    int64_t N, C, groups, pixels;  // x (N, C, pixels)
};

struct Tensors {
    const float *x, *weight, *bias;
    float* y;
    void* scratch;
#if BACKWARD
    float* means;  // (N, groups, 2): each group's mean and rstd
    const float* gy;
    float *gx, *gweight, *gbias;  // gx may be nullptr, or the other two
#endif
};

// Bytes of global memory that launch needs for itself, a multiple of 8; -1 if there are too many parts for one launch.
int64_t scratch_bytes(const Sizes& of);
const char* launch(const Tensors& t, const Sizes& of, float eps, void* on_stream);
#if BACKWARD
int64_t backward_scratch_bytes(const Sizes& of);  // the same for launch_backward
const char* launch_backward(const Tensors& t, const Sizes& of, void* on_stream);
#endif
