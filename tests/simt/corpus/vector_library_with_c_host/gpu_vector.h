#ifndef GPU_VECTOR_H
#define GPU_VECTOR_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpu_vector gpu_vector;
typedef enum { GPU_OK, GPU_NO_MEMORY, GPU_ERROR } gpu_status;
typedef enum { GPU_NEGATE = 1, GPU_SQUARE, GPU_CLAMP } gpu_function;

gpu_vector *gpu_vector_create(const float *values, int n);
void gpu_vector_destroy(gpu_vector *v);
void gpu_vector_read(const gpu_vector *v, float *values);
void gpu_axpy(float a, const gpu_vector *x, gpu_vector *y);
double gpu_dot(const gpu_vector *x, const gpu_vector *y);
void gpu_map(gpu_vector *x, gpu_function f);
gpu_status gpu_last_status(void);

/* The same on the CPU */
void reference_axpy(int n, float a, const float *x, float *y);
double reference_dot(int n, const float *x, const float *y);
void reference_map(int n, float *x, gpu_function f);

#ifdef __cplusplus
}
#endif

#endif
