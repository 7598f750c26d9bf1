// Stands in for cuRAND's curand_lognormal.h.
#pragma once
#include <simt/curand_quasi_values.h>
