// Stands in for helper_cuda.h of NVIDIA's samples.
#pragma once
#include <simt/samples.h>
