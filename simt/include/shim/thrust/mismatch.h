// Stands in for thrust's thrust/mismatch.h.
#pragma once
#include <simt/thrust.h>
