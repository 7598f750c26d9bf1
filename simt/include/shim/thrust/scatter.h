// Stands in for thrust's thrust/scatter.h.
#pragma once
#include <simt/thrust.h>
