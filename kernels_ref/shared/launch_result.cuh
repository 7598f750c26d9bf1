// What went wrong, or null.
static const char* message(cudaError_t error = cudaGetLastError()) {
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
