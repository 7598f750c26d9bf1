// Stands in for CUDA's device_atomic_functions.h.
#pragma once
#include <simt/atomic.h>
