#pragma once

#include <cstddef>
#include <memory>

#include "coccl/types.hpp"

namespace coccl {

// Orders the copies between ranks of one process on their CUDA streams, while no host thread waits
// for the device: a reader's stream waits until the owner's has come to the exchange, and the
// owner's waits until the reader's has copied. Each method is called on the thread and the device
// of the rank that `stream` belongs to. Without CUDA each throws UnsupportedError.
//
// Events are made at first use and then reused. A wait sees the record before it, so an event may
// be recorded again once those who wait for it have said so to their streams: readers do so before
// they end an offer, and an owner before it offers again.
class StreamOrder {
 public:
  explicit StreamOrder(int size);
  ~StreamOrder();

  // `owner`'s stream has come to the exchange.
  void ready(int owner, Stream stream);
  // Copies on the stream of `reader`, after the owner's ready().
  struct Copy {
    int owner;
    int reader;
    const void* from;
    void* to;
    std::size_t bytes;
  };
  void copy(const Copy&, Stream stream);
  // What the owner's stream does from here on comes after the last copy by `reader`.
  void after_reader(int owner, int reader, Stream stream);

 private:
  struct Events;
  std::unique_ptr<Events> events_;
};

}  // namespace coccl
