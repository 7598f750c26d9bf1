// Stands in for cuRAND's curand.h.
#pragma once
#include <simt/curand_quasi_host.h>
