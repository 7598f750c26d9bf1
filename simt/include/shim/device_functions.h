// Stands in for CUDA's device_functions.h.
#pragma once
#include <simt/math.h>
