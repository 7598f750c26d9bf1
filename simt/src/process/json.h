// Writes values as JSON for Python.
#pragma once

#include <cstdio>
#include <string>

namespace simt {

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 32) {
      out += c;
      continue;
    }
    char code[8];
    std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
    out += code;
  }
  return out + "\"";
}

template <class Dimensions>
std::string three(const Dimensions& d) {
  return "[" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + "]";
}

// write(each) of all of them, as an array.
template <class All, class Write>
std::string array_of(const All& all, Write write) {
  std::string out;
  for (const auto& each : all) out += (out.empty() ? "" : ",") + write(each);
  return "[" + out + "]";
}

}  // namespace simt
