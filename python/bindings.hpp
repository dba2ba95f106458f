#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "coccl/types.hpp"

namespace nb = nanobind;

// One function for each public header; each adds its names to the module.
void bind_error(nb::module_& module);
void bind_compressor(nb::module_& module);
void bind_transport(nb::module_& module);
void bind_communicator(nb::module_& module);

// An address as Python passes it.
template <class T = void>
T* pointer(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

// None is host memory; a number is a cudaStream_t, 0 the default stream.
inline coccl::Stream stream_of(std::optional<std::uintptr_t> handle) {
  if (!handle) return {};
  return {coccl::Place::cuda, pointer(*handle)};
}

// A Python integer as a count; ArgumentError that names it unless it is in [0, 2^63).
std::uint64_t count_of(const nb::int_& count);
