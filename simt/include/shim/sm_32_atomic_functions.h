// Stands in for CUDA's sm_32_atomic_functions.h.
#pragma once
#include <simt/atomic.h>
