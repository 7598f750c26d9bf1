// Stands in for CUDA's mma.h.
#pragma once
#include <simt/wmma.h>
