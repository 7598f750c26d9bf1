// Stands in for CUDA's cuda_fp8.h.
#pragma once
#include <simt/fp8.h>
