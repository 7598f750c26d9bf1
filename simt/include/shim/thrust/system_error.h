// Stands in for thrust's thrust/system_error.h.
#pragma once
#include <simt/thrust.h>
