// Stands in for CUDA's builtin_types.h.
#pragma once
#include <simt/cuda_api.h>
