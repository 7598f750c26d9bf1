// Stands in for thrust's thrust/binary_search.h.
#pragma once
#include <simt/thrust.h>
