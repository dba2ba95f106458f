#pragma once

#include <stdexcept>

namespace coccl {

// Every error that coccl throws. The message names the offending value and what is accepted.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The caller passed something that can never work: an unknown name, a null pointer, a bad rank.
struct ArgumentError : Error {
  using Error::Error;
};

// This build, this machine or this library version cannot do what was asked.
struct UnsupportedError : Error {
  using Error::Error;
};

// A CUDA runtime call failed.
struct CudaError : Error {
  using Error::Error;
};

// Bytes could not be moved: a peer failed, the transport was closed or a deadline passed.
struct TransportError : Error {
  using Error::Error;
};

}  // namespace coccl
