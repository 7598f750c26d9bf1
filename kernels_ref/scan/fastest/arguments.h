// The interface of the CUDA source, which includes no header of torch. Tensors are contiguous.

// Returns the bytes of global memory that launch needs for itself, a multiple of 8; -1 if x is too long for one launch.
int64_t scratch_bytes(int64_t length);
// y[i] = the sum of x up to i. Returns what went wrong, or nullptr.
const char* launch(const float* x, float* y, void* scratch, int64_t length, void* on_stream);
