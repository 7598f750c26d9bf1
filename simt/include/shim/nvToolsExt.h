// Stands in for NVTX's nvToolsExt.h.
#pragma once
#include <simt/nvtx.h>
