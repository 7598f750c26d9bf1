// Runs a program that simt built for another architecture, under qemu: what simt/program.py does, without Python.
#include <dlfcn.h>
#include <stdio.h>

// As in src/process/program.cpp.
typedef struct {
  int how, status, left_over, told, codes, crash;
  unsigned long long address, code[16];
  char text[480];
} End;

int main(int count, char** words) {
  if (count != 3) return 2;
  void* runtime = dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
  if (!runtime) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  void (*set_options)(int, unsigned long long, double, int) = dlsym(runtime, "simt_set_options");
  void (*set_device)(const char*, const long long*) = dlsym(runtime, "simt_set_device");
  void (*run_program)(const char*, int, char**, End*) = dlsym(runtime, "simt_run_program");
  const long long t4[] = {7, 5, 40, 1024, 16, 65536, 1590000, 4 << 20, 16LL << 30, 48 << 10, 64 << 10, 64 << 10};
  set_options(0, 0, 100, 2);
  set_device("T4", t4);
  char* arguments[] = {words[2], 0};
  End end = {0};
  run_program(words[2], 1, arguments, &end);
  fprintf(stderr, "%s\n", end.text);
  return end.status;
}
