// Stands in for thrust's thrust/device_vector.h.
#pragma once
#include <simt/thrust.h>
