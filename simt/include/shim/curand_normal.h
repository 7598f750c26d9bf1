// Stands in for cuRAND's curand_normal.h.
#pragma once
#include <simt/curand_quasi_values.h>
