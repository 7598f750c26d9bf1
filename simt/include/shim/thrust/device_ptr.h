// Stands in for thrust's thrust/device_ptr.h.
#pragma once
#include <simt/thrust.h>
