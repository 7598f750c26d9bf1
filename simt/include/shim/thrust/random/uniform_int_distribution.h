// Stands in for thrust's thrust/random/uniform_int_distribution.h.
#pragma once
#include <simt/thrust_random.h>
