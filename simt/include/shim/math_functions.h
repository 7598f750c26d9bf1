// Stands in for CUDA's math_functions.h.
#pragma once
#include <simt/math.h>
