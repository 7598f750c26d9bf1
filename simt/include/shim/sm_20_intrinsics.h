// Stands in for CUDA's sm_20_intrinsics.h.
#pragma once
#include <simt/warp.h>
