// Stands in for CUDA's host_defines.h.
#pragma once
#include <simt/types.h>
