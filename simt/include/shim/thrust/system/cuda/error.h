// Stands in for thrust's thrust/system/cuda/error.h.
#pragma once
#include <simt/thrust.h>
