// Stands in for CUDA's cuda_bf16.h.
#pragma once
#include <simt/bfloat16.h>
