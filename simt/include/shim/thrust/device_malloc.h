// Stands in for thrust's thrust/device_malloc.h.
#pragma once
#include <simt/thrust.h>
