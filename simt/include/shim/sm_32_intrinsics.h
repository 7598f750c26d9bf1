// Stands in for CUDA's sm_32_intrinsics.h.
#pragma once
#include <simt/math.h>
