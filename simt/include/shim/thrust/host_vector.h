// Stands in for thrust's thrust/host_vector.h.
#pragma once
#include <simt/thrust.h>
