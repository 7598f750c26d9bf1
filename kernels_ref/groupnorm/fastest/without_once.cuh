bool launch_once(const Tensors&, const Sizes&, float, cudaStream_t) { return false; }
#if BACKWARD
bool launch_backward_once(const Tensors&, const Sizes&, float2*, cudaStream_t) { return false; }
#endif
