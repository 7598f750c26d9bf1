// Stands in for cuRAND's curand_lognormal.h.
#pragma once
#include <simt/curand_values.h>
