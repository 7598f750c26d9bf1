// Stands in for thrust's thrust/count.h.
#pragma once
#include <simt/thrust.h>
