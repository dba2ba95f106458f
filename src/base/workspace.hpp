#pragma once

#include <cstddef>
#include <memory>

#include "coccl/types.hpp"

namespace coccl {

// Scratch memory that grows to the largest call and is then reused: a warm call allocates nothing.
// Uses on different streams are ordered one after another.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

  // At least `bytes` bytes, 16-byte aligned, in the stream's place; theirs whom the stream's work
  // is for until release(). Contents are arbitrary. Memory that a CUDA graph may have captured is
  // kept until the end; growing inside a capture is an Error that says how to avoid it.
  std::byte* acquire(std::size_t bytes, Stream stream);
  // Marks the end of a use, on its stream.
  void release(Stream stream);

  // Bytes held in all places.
  std::size_t bytes() const;

 private:
  struct Device;
  std::unique_ptr<std::byte[]> host_;
  std::size_t host_bytes_ = 0;
  std::unique_ptr<Device> device_;
};

}  // namespace coccl
