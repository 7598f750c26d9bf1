// Stands in for thrust's thrust/zip_function.h.
#pragma once
#include <simt/thrust.h>
