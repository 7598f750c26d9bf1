// Stands in for thrust's thrust/swap.h.
#pragma once
#include <simt/thrust.h>
