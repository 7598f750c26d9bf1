// Stands in for CUDA's sm_61_intrinsics.h.
#pragma once
#include <simt/math.h>
