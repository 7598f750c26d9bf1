// Stands in for thrust's thrust/equal.h.
#pragma once
#include <simt/thrust.h>
