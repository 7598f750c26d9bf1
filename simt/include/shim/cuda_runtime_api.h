// Stands in for CUDA's cuda_runtime_api.h.
#pragma once
#include <simt/cuda_api.h>
