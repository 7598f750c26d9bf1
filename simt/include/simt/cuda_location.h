// Where memory is, for CUDA's functions about managed memory and memory pools.
#pragma once

inline constexpr int cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2;
enum cudaMemLocationType {
  cudaMemLocationTypeInvalid = 0,
  cudaMemLocationTypeDevice = 1,
  cudaMemLocationTypeHost = 2,
  cudaMemLocationTypeHostNuma = 3,
  cudaMemLocationTypeHostNumaCurrent = 4,
};
struct cudaMemLocation {
  cudaMemLocationType type;
  int id;
};
