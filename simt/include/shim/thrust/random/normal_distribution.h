// Stands in for thrust's thrust/random/normal_distribution.h.
#pragma once
#include <simt/thrust_random.h>
