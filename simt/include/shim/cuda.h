// Stands in for CUDA's cuda.h.
#pragma once
#include <simt/cuda.h>
