// Stands in for thrust's thrust/sort.h.
#pragma once
#include <simt/thrust.h>
