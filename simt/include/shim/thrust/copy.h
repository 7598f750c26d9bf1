// Stands in for thrust's thrust/copy.h.
#pragma once
#include <simt/thrust.h>
