// Stands in for thrust's thrust/uninitialized_copy.h.
#pragma once
#include <simt/thrust.h>
