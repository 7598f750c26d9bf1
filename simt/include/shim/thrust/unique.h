// Stands in for thrust's thrust/unique.h.
#pragma once
#include <simt/thrust.h>
