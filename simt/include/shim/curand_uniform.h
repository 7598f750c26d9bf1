// Stands in for cuRAND's curand_uniform.h.
#pragma once
#include <simt/curand_quasi_values.h>
