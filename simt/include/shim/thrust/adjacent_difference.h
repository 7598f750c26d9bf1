// Stands in for thrust's thrust/adjacent_difference.h.
#pragma once
#include <simt/thrust.h>
