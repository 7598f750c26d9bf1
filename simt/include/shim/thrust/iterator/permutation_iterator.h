// Stands in for thrust's thrust/iterator/permutation_iterator.h.
#pragma once
#include <simt/thrust.h>
