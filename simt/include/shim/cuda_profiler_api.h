// Stands in for CUDA's cuda_profiler_api.h.
#pragma once
#include <simt/cuda_api.h>
