// Stands in for thrust's thrust/device_reference.h.
#pragma once
#include <simt/thrust.h>
