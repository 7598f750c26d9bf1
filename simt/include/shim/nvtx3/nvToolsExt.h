// Stands in for NVTX's nvtx3/nvToolsExt.h.
#pragma once
#include <simt/nvtx.h>
