// Device functions for programs of this folder that show findings in an included file.
#pragma once

__device__ inline float sum_of_window(const float* line, int i, int radius) {
  float sum = 0;
  for (int k = -radius; k <= radius; k++) sum += line[i + k];  // defect
  return sum;
}
