// Stands in for thrust's thrust/uninitialized_fill.h.
#pragma once
#include <simt/thrust.h>
