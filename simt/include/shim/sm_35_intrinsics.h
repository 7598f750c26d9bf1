// Stands in for CUDA's sm_35_intrinsics.h.
#pragma once
#include <simt/warp.h>
