// Stands in for thrust's thrust/generate.h.
#pragma once
#include <simt/thrust.h>
