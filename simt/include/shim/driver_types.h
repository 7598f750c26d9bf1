// Stands in for CUDA's driver_types.h.
#pragma once
#include <simt/cuda_api.h>
