// Stands in for thrust's thrust/random/linear_congruential_engine.h.
#pragma once
#include <simt/thrust_random.h>
