// What the kernel computes of a number.
#pragma once

__device__ inline float positive(float value) { return value > 0.0f ? value : 0.0f; }
