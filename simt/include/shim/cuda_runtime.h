// Stands in for CUDA's cuda_runtime.h.
#pragma once
#include <simt/cuda.h>
