// Stands in for thrust's thrust/for_each.h.
#pragma once
#include <simt/thrust.h>
