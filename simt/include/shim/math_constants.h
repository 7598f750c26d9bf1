// Stands in for CUDA's math_constants.h.
#pragma once
#include <simt/math_constants.h>
