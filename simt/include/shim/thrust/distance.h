// Stands in for thrust's thrust/distance.h.
#pragma once
#include <simt/thrust.h>
