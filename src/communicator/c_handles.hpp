#pragma once

#include <exception>
#include <memory>
#include <string>

#include "coccl/coccl.h"
#include "coccl/communicator.hpp"
#include "coccl/error.hpp"
#include "transport/local.hpp"
#include "transport/nccl.hpp"

// What the C API's handles point to, and how its functions turn what C++ throws into codes.

struct cocclComm {
  coccl::Communicator communicator;
  coccl::NcclTransport* nccl;  // the communicator's transport, if it is NCCL
  coccl::Place place;
  std::string algorithm;
};

struct cocclLocal {
  std::shared_ptr<coccl::LocalHub> hub;
  coccl::Place place;
  std::string algorithm;
};

namespace coccl::c_api {

// The message of this thread's last failure.
std::string& last_error();

// The code of an exception, whose message it keeps.
cocclResult_t keep(const std::exception& error) noexcept;

// Runs a body that may throw.
template <class Body>
cocclResult_t guarded(const Body& body) noexcept {
  try {
    body();
    return cocclSuccess;
  } catch (const std::exception& error) {
    return keep(error);
  }
}

template <class T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) throw ArgumentError(std::string(name) + " is null");
  return *pointer;
}

}  // namespace coccl::c_api
