// A block's sum that forgets the barrier between its passes.
#pragma once

template <class T>
__device__ T sum_in_block(T* scratch, T value) {
  const int t = threadIdx.x;
  scratch[t] = value;  // other
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) scratch[t] += scratch[t + half];  // defect
    __syncthreads();
  }
  return scratch[0];
}
