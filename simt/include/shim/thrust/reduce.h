// Stands in for thrust's thrust/reduce.h.
#pragma once
#include <simt/thrust.h>
