// thrust without its asynchronous algorithms, memory resources and universal vectors.
// NVIDIA's headers with their C++ back end cannot stand here: their libcu++ defines the names of simt's in cuda::, and the
// back end reads and writes device memory on the host, where the checks see no kernel.
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
