// Stands in for thrust's thrust/remove.h.
#pragma once
#include <simt/thrust.h>
