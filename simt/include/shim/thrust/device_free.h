// Stands in for thrust's thrust/device_free.h.
#pragma once
#include <simt/thrust.h>
