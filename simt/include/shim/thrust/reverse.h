// Stands in for thrust's thrust/reverse.h.
#pragma once
#include <simt/thrust.h>
