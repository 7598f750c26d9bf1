// Stands in for thrust's thrust/set_operations.h.
#pragma once
#include <simt/thrust.h>
