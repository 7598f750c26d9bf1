// Stands in for cuRAND's curand_philox4x32_x.h.
#pragma once
#include <simt/curand_quasi_values.h>
