// Stands in for thrust's thrust/random.h.
#pragma once
#include <simt/thrust_random.h>
