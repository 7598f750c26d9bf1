// Stands in for cuRAND's curand_kernel.h, which includes curand.h.
#pragma once
#include <simt/curand_quasi_host.h>
#include <simt/curand_quasi_values.h>
