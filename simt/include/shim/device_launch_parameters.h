// Stands in for CUDA's device_launch_parameters.h.
#pragma once
#include <simt/types.h>
