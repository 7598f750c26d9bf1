// Stands in for CUDA's cuda.h.
#pragma once
#include <simt/cuda.h>
#include <simt/cuda_driver.h>
