// Stands in for CUDA's sm_60_atomic_functions.h.
#pragma once
#include <simt/atomic.h>
