// Stands in for CUDA's sm_35_atomic_functions.h.
#pragma once
#include <simt/atomic.h>
