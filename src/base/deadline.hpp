#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "coccl/error.hpp"

namespace coccl {

using Seconds = std::chrono::duration<double>;

// "0.25 s"
inline std::string text_of(Seconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", time.count());
  return text;
}

inline Seconds checked_timeout(Seconds timeout) {
  if (timeout.count() > 0) return timeout;
  throw ArgumentError("timeout of " + text_of(timeout) + "; it must be above 0 s");
}

// The moment at which waiting ends.
inline std::chrono::steady_clock::time_point deadline_after(Seconds timeout) {
  constexpr Seconds for_ever = std::chrono::hours(24 * 365);  // the clock's range is finite
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::min(timeout, for_ever));
}

}  // namespace coccl
