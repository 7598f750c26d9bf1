// Stands in for CUDA's cuda_fp16.h.
#pragma once
#include <simt/half.h>
