// Stands in for cuRAND's curand_poisson.h.
#pragma once
#include <simt/curand_quasi_values.h>
