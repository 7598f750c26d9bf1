// Stands in for CUDA's vector_types.h.
#pragma once
#include <simt/types.h>
