// Stands in for thrust's thrust/functional.h.
#pragma once
#include <simt/thrust.h>
