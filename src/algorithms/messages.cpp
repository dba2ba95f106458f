#include "algorithms/algorithm.hpp"

namespace coccl {

void Messages::exchange(Transport& transport, Stream stream) {
  struct Forget {
    Messages& messages;
    ~Forget() {
      messages.sends_.clear();
      messages.recvs_.clear();
    }
  } forget{*this};
  transport.exchange(sends_, recvs_, stream);
}

}  // namespace coccl
