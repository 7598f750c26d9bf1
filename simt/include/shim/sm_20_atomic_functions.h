// Stands in for CUDA's sm_20_atomic_functions.h.
#pragma once
#include <simt/atomic.h>
