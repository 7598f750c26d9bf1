// thrust without its asynchronous algorithms, memory resources and universal vectors.
#pragma once

#include <simt/thrust_functional.h>
#include <simt/thrust_iterators.h>
#include <simt/thrust_memory.h>
#include <simt/thrust_reduce.h>
#include <simt/thrust_scan.h>
#include <simt/thrust_select.h>
#include <simt/thrust_sort.h>
#include <simt/thrust_transform.h>
#include <simt/thrust_vectors.h>
