// Runs the device-wide functions of cub and thrust. Each is the work of one thread in a launch of its own, so that
// streams, graphs, faults and the checks treat it as a kernel.
#pragma once

#include <iterator>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <simt/cuda_api.h>

namespace simt {

// The program's call: a finding that is not in the program's own functor is reported there.
struct CallSite {
  const char* file;
  int line;
};
#define SIMT_CALLER ::simt::CallSite caller = {__builtin_FILE(), __builtin_LINE()}

// Memory that only one call uses. It is device memory, so that a kernel may access it, and is allocated before the launch,
// at whose start the checks list all memory. Returns to the host by get().
template <class T>
class Scratch {
 public:
  explicit Scratch(std::size_t count) : pointer_((T*)allocate_at(count ? count * sizeof(T) : 1, nullptr)) {
    if (!pointer_) __builtin_abort();
  }
  ~Scratch() { release(pointer_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* pointer() const { return pointer_; }
  T get() const {
    alignas(T) unsigned char bytes[sizeof(T)];
    move_bytes(bytes, pointer_, sizeof(T));
    return *(T*)bytes;
  }

 private:
  T* pointer_;
};
template <class T>
std::shared_ptr<Scratch<T>> make_scratch(std::size_t count) {
  return std::make_shared<Scratch<T>>(count);
}

// What a launch records of an argument, to name its memory in messages. Iterators overload it (raw_pointer).
template <class T>
T* find_pointer(T* pointer) {
  return pointer;
}
template <class T>
auto find_pointer(const T& iterator) {
  if constexpr (requires { iterator.raw_pointer(); })
    return iterator.raw_pointer();
  else
    return (const void*)nullptr;
}

// Runs `body` as a kernel of the name `name`; it must own all that it uses but `owner`, which lives as long as the kernel
// may run. arguments: what the library function was given, with `parameters` as their names, comma separated.
template <class F, class... A>
void call_device(const char* name, const char* parameters, cudaStream_t stream, CallSite caller,
                 std::shared_ptr<const void> owner, F body, const A&... arguments) {
  // A functor with a state changes its own copy: a kernel must not write to the host's variables.
  auto call = [body](auto...) {
    F own(body);
    own();
  };
  std::tuple<decltype(find_pointer(arguments))...> pointers(find_pointer(arguments)...);
  const Site site{name, caller.file, caller.line, parameters, caller.line, 0, true};
  auto launch = [=]() {
    auto own = call;
    auto values = pointers;
    launch_body(site, nullptr, own, Config{dim3(1), dim3(1), 0, nullptr}, false, values);
  };
  if (CaptureBase* recorder = capture_of(stream)) {
    recorder->add(kernel_node, defer([launch, owner] { launch(); }));
    return;
  }
#ifdef SIMT_COUNT
  // The work of one thread says nothing about the library's kernels on a GPU, so that it is not counted.
  if (!sticky_error()) call();
#else
  launch();
#endif
}

// ---- iterators ----

template <class It>
using value_of = std::remove_cv_t<typename std::iterator_traits<It>::value_type>;

// The value type of an output iterator, or Else where it has none, as that of thrust's discard_iterator.
template <class It, class Else>
struct OutputValue {
  using type = Else;
};
template <class It, class Else>
  requires(
      requires { typename std::iterator_traits<It>::value_type; } &&
      std::is_object_v<typename std::iterator_traits<It>::value_type> && !requires { typename It::discards; })
struct OutputValue<It, Else> {
  using type = value_of<It>;
};
template <class It, class Else>
using output_value = typename OutputValue<It, Else>::type;

// Gives an iterator class its operators. Derived defines at(n), which returns the element n steps ahead, move(n), and
// distance(to).
template <class Derived, class Value, class Reference, class Difference = std::ptrdiff_t>
struct IteratorBase {
  using value_type = Value;
  using reference = Reference;
  using pointer = std::add_pointer_t<std::remove_reference_t<Reference>>;
  using difference_type = Difference;
  using iterator_category = std::random_access_iterator_tag;

  Reference operator*() const { return self().at(0); }
  Reference operator[](Difference n) const { return self().at(n); }
  Derived& operator++() { return moved(1); }
  Derived& operator--() { return moved(-1); }
  Derived operator++(int) {
    Derived old = self();
    moved(1);
    return old;
  }
  Derived operator--(int) {
    Derived old = self();
    moved(-1);
    return old;
  }
  Derived& operator+=(Difference n) { return moved(n); }
  Derived& operator-=(Difference n) { return moved(-n); }
  friend Derived operator+(Derived it, Difference n) { return it += n; }
  friend Derived operator+(Difference n, Derived it) { return it += n; }
  friend Derived operator-(Derived it, Difference n) { return it -= n; }
  friend Difference operator-(const Derived& a, const Derived& b) { return b.distance(a); }
  friend bool operator==(const Derived& a, const Derived& b) { return b.distance(a) == 0; }
  friend bool operator!=(const Derived& a, const Derived& b) { return b.distance(a) != 0; }
  friend bool operator<(const Derived& a, const Derived& b) { return b.distance(a) < 0; }
  friend bool operator>(const Derived& a, const Derived& b) { return b.distance(a) > 0; }
  friend bool operator<=(const Derived& a, const Derived& b) { return b.distance(a) <= 0; }
  friend bool operator>=(const Derived& a, const Derived& b) { return b.distance(a) >= 0; }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }
  Derived& moved(Difference n) {
    static_cast<Derived&>(*this).move(n);
    return static_cast<Derived&>(*this);
  }
};

}  // namespace simt
