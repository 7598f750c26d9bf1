// Stands in for CUDA's cuComplex.h.
#pragma once
#include <simt/complex.h>
