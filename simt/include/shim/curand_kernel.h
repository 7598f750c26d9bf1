// Stands in for cuRAND's curand_kernel.h.
#pragma once
#include <simt/curand_values.h>
