// Stands in for thrust's thrust/tabulate.h.
#pragma once
#include <simt/thrust.h>
