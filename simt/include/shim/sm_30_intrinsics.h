// Stands in for CUDA's sm_30_intrinsics.h.
#pragma once
#include <simt/warp.h>
