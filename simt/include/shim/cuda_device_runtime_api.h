// Stands in for CUDA's cuda_device_runtime_api.h.
#pragma once
#include <simt/cuda_api.h>
