// Stands in for thrust's thrust/tuple.h.
#pragma once
#include <simt/thrust.h>
