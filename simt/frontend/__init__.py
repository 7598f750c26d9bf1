"""CUDA C++ text in, C++ that g++ compiles out."""
