// Stands in for CUDA's vector_functions.h.
#pragma once
#include <simt/types.h>
