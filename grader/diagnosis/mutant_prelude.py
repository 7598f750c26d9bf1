"""The C++ in front of a rewritten source: operators and functions that compute what the active mutant needs."""

PRELUDE = r"""
_Pragma("GCC optimize (\"O1\")")
extern "C" { __attribute__((visibility("default"))) int grader_mutant = 0; }
namespace grader_edits {
inline bool odd(float v) { return __builtin_isnan(v) || __builtin_isinf(v); }
inline bool odd(double v) { return __builtin_isnan(v) || __builtin_isinf(v); }
template <class T> inline bool odd(const T&) { return false; }
inline int on(int id) { return grader_mutant - id; }
template <class T> inline int on(const T& t) { return t.twin && grader_mutant >= t.twin && grader_mutant <
    t.twin + 5 ? grader_mutant -
    t.twin : grader_mutant - t.id; }
inline const char* birth(float v) { return __builtin_isnan(v) ? "finite, not NaN" : "finite, not infinity"; }
inline const char* birth(double v) { return __builtin_isnan(v) ? "finite, not NaN" : "finite, not infinity"; }
template <class T> inline const char* birth(const T&) { return "finite"; }
template <class R> inline R born(R r, bool before, int line) { if (grader_mutant == -1 && !before && odd(r))
    ::simt::device_assert(birth(r), line); return r; }
struct Add { int id, line, twin; }; struct Sub { int id, line, twin; }; struct Mul { int id, line, twin; };
    struct Div { int id, line,
    twin; }; struct Mod { int id, line, twin; };
template <class A, class T> struct Left { A a; T t; };
template <class A> inline Left<A, Add> operator+(A a, Add t) { return {a, t}; }
template <class A> inline Left<A, Sub> operator-(A a, Sub t) { return {a, t}; }
template <class A> inline Left<A, Mul> operator*(A a, Mul t) { return {a, t}; }
template <class A> inline Left<A, Div> operator/(A a, Div t) { return {a, t}; }
template <class A> inline Left<A, Mod> operator%(A a, Mod t) { return {a, t}; }
template <class A, class B> inline auto operator+(Left<A, Add> l, B b) -> decltype(l.a + b) {
  using R = decltype(l.a + b);
  int k = on(l.t);
  if (k == 0) { if constexpr (requires { R(l.a - b); }) return R(l.a - b); }
  if (k == 1) { if constexpr (requires { R(l.a); }) return R(l.a); }
  if (k == 2) { if constexpr (std::is_arithmetic_v<B> && std::is_arithmetic_v<R>) return R(b); }
  if (k == 3) { if constexpr (requires { R(l.a * b); }) return R(l.a * b); }
  return born<R>(l.a + b, odd(l.a) || odd(b), l.t.line);
}
template <class A, class B> inline auto operator-(Left<A, Sub> l, B b) -> decltype(l.a - b) {
  using R = decltype(l.a - b);
  int k = on(l.t);
  if (k == 0) { if constexpr (requires { R(l.a + b); }) return R(l.a + b); }
  if (k == 1) { if constexpr (std::is_arithmetic_v<R>) return R(l.a); }
  if (k == 2) { if constexpr (std::is_integral_v<R>) return R(l.a - b + 1); }
  return born<R>(l.a - b, odd(l.a) || odd(b), l.t.line);
}
template <class A, class B> inline auto operator*(Left<A, Mul> l, B b) -> decltype(l.a * b) {
  using R = decltype(l.a * b);
  int k = on(l.t);
  if (k == 0) { if constexpr (std::is_arithmetic_v<B> && requires { R(l.a / b); }) return b == 0 ? R(l.a) :
      R(l.a / b); }
  if (k == 1) { if constexpr (requires { R(l.a); }) return R(l.a); }
  if (k == 2) { if constexpr (std::is_arithmetic_v<B> && std::is_arithmetic_v<R>) return R(b); }
  if (k == 3) { if constexpr (requires { R(l.a + b); }) return R(l.a + b); }
  return born<R>(l.a * b, odd(l.a) || odd(b), l.t.line);
}
template <class A, class B> inline auto operator/(Left<A, Div> l, B b) -> decltype(l.a / b) {
  using R = decltype(l.a / b);
  int k = on(l.t);
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) if (l.t.line < 0 && b == 0) throw
      std::runtime_error("a division by zero");
  if (k == 0) { if constexpr (requires { R(l.a * b); }) return R(l.a * b); }
  if (k == 1) { if constexpr (requires { R(l.a); }) return R(l.a); }
  if (k == 2) { if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) if (b != 0) return R(l.a % b); }
  if (k == 3) { if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) if (b != 0) return R(l.a / b +
      (l.a % b != 0)); }
  if (k == 4) { if constexpr (std::is_integral_v<R>) if (b != 0) return R(l.a / b + 1); }
  return born<R>(l.a / b, odd(l.a) || odd(b), l.t.line);
}
template <class A, class B> inline auto operator%(Left<A, Mod> l, B b) -> decltype(l.a % b) {
  using R = decltype(l.a % b);
  int k = on(l.t);
  if (l.t.line < 0 && b == 0) throw std::runtime_error("a division by zero");
  if (k == 0 && b != 0) return R(l.a / b);
  if (k == 1) return R(l.a);
  if (k == 2) return R(l.a * b);
  return l.a % b;
}
struct Lt { int id; }; struct Le { int id; }; struct Gt { int id; }; struct Ge { int id; };
template <class A> inline Left<A, Lt> operator<(A a, Lt t) { return {a, t}; }
template <class A> inline Left<A, Le> operator<=(A a, Le t) { return {a, t}; }
template <class A> inline Left<A, Gt> operator>(A a, Gt t) { return {a, t}; }
template <class A> inline Left<A, Ge> operator>=(A a, Ge t) { return {a, t}; }
template <class A, class B> inline bool operator<(Left<A, Lt> l, B b) { int k = on(l.t.id); return k == 0 ? l.a
    <= b : k == 1 ? l.a >= b
    : k == 2 ? l.a > b : k == 3 ? true : k == 4 ? false : l.a < b; }
template <class A, class B> inline bool operator<=(Left<A, Le> l, B b) { int k = on(l.t.id); return k == 0 ? l.a
    < b : k == 1 ? l.a > b :
    k == 2 ? l.a >= b : k == 3 ? true : k == 4 ? false : l.a <= b; }
template <class A, class B> inline bool operator>(Left<A, Gt> l, B b) { int k = on(l.t.id); return k == 0 ? l.a
    >= b : k == 1 ? l.a <= b
    : k == 2 ? l.a < b : k == 3 ? true : k == 4 ? false : l.a > b; }
template <class A, class B> inline bool operator>=(Left<A, Ge> l, B b) { int k = on(l.t.id); return k == 0 ? l.a
    > b : k == 1 ? l.a < b :
    k == 2 ? l.a <= b : k == 3 ? true : k == 4 ? false : l.a >= b; }
template <class T> inline T number(int id, T v) { switch (on(id)) { case 0: return v + 1; case 1: return v - 1;
    case 2: return 2 * v;
    case 3: return v / 2; case 4: return 1; case 5: return 0; case 6: return T(-INFINITY); case 7: return
        T(INFINITY); } return v; }
template <class T> inline T moved(int id, T v) { int k = on(id); if constexpr (std::is_integral_v<T>) { if (k ==
    0) return v + 1; if (k
    == 1) return v - 1; } return v; }
template <class A, class T> inline T index(int id, int line, const A&, T v) {
  v = moved(id, v);
  if constexpr (std::is_array_v<A> && std::is_integral_v<T>) if (grader_mutant && (unsigned long long)v >=
      std::extent_v<A>)
      ::simt::device_assert("inside", line);
  return v;
}
inline bool test(int id, bool v) { int k = on(id); return k == 0 ? false : k == 1 ? true : k == 2 ? !v : v; }
template <class T, class U> inline void one(T& chosen, int k, U other) {
  if (k != 0) return;
  if constexpr (std::is_arithmetic_v<T> && std::is_arithmetic_v<U>) chosen = T(other);
  else if constexpr (std::is_same_v<T, U>) chosen = other;
}
template <class T, class... U> inline T pick(int id, T v, U... others) {
  unsigned k = on(id);
  if (k < sizeof...(U)) { T chosen = v; int n = 0; (one(chosen, int(k) - n++, others), ...); return chosen; }
  return v;
}
template <class S> inline long long narrow(int id, long long v) { return on(id) == 0 ? v : (long long)(S)v; }
template <class F> struct Known { int line; F f; template <class A> auto operator()(A a) const -> decltype(f(a))
    { return born(f(a),
    odd(a), line); } };
template <class F> inline Known<F> known(int line, F f) { return {line, f}; }
template <class F, class G> struct Either { int id; F f; G g; template <class... A> auto operator()(A... a)
    const -> decltype(f(a...)) {
    return on(id) == 0 ? g(a...) : f(a...); } };
template <class F, class G> inline Either<F, G> either(int id, F f, G g) { return {id, f, g}; }
}
"""
