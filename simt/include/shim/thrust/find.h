// Stands in for thrust's thrust/find.h.
#pragma once
#include <simt/thrust.h>
