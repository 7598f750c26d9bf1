// Stands in for thrust's thrust/extrema.h.
#pragma once
#include <simt/thrust.h>
