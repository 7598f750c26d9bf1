// Stands in for thrust's thrust/fill.h.
#pragma once
#include <simt/thrust.h>
