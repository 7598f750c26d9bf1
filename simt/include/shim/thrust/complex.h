// Stands in for thrust's thrust/complex.h.
#pragma once
#include <simt/thrust_complex.h>
