// Stands in for thrust's thrust/transform_reduce.h.
#pragma once
#include <simt/thrust.h>
