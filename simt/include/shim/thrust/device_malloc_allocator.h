// Stands in for thrust's thrust/device_malloc_allocator.h.
#pragma once
#include <simt/thrust.h>
