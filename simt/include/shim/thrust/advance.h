// Stands in for thrust's thrust/advance.h.
#pragma once
#include <simt/thrust.h>
