#pragma once
#include <stdio.h>
#include <stdlib.h>

/* two macros of one name: with and without a message */
#define CHECK_GET(_1, _2, name, ...) name
#define CHECK_1(call) check_(call, #call, __FILE__, __LINE__)
#define CHECK_2(call, message) check_(call, message, __FILE__, __LINE__)
#define CHECK(...) CHECK_GET(__VA_ARGS__, CHECK_2, CHECK_1, 0)(__VA_ARGS__)

static inline void check_(cudaError_t e, const char *what, const char *file, int line)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(e));
    exit(3);
}
