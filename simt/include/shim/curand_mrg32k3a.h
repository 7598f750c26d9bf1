// Stands in for cuRAND's curand_mrg32k3a.h.
#pragma once
#include <simt/curand_quasi_values.h>
