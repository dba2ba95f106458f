#include "coccl/communicator.hpp"

#include <exception>
#include <string>
#include <utility>

#include "algorithms/algorithm.hpp"
#include "algorithms/select.hpp"
#include "base/memory.hpp"
#include "base/workspace.hpp"
#include "coccl/error.hpp"

namespace coccl {

namespace {

constexpr unsigned char kPoison = 0xff;  // NaN, read as a float of any format

// How many times `count` elements the larger buffer of a collective holds.
std::uint64_t parts_of(Collective collective, const Topology& topology) {
  return collective == Collective::all_reduce ? 1 : static_cast<std::uint64_t>(topology.size());
}

void check_arguments(Collective collective, const Buffers& buffers, Op op, int size) {
  const std::string name(name_of(collective));
  if (!compressible(buffers.type)) {
    throw ArgumentError(name + " of type " + std::string(name_of(buffers.type)) + " (" +
                        std::to_string(static_cast<int>(buffers.type)) +
                        "); accepted: float32, bfloat16, float16");
  }
  if (op != Op::sum && op != Op::avg) {
    throw ArgumentError(name + " with op " + std::string(name_of(op)) + " (" +
                        std::to_string(static_cast<int>(op)) + "); accepted: sum, avg");
  }
  // No buffer has more elements; below it no arithmetic on bytes or blocks can overflow.
  const std::uint64_t most = (std::uint64_t{1} << 56) / static_cast<std::uint64_t>(size);
  if (buffers.count > most) {
    throw ArgumentError(name + " of count " + std::to_string(buffers.count) + "; accepted: 0 to " +
                        std::to_string(most));
  }
  if (buffers.count == 0) return;
  if (buffers.input == nullptr) throw ArgumentError(name + " with a null input");
  if (buffers.output == nullptr) throw ArgumentError(name + " with a null output");
}

}  // namespace

struct Communicator::State {
  std::unique_ptr<Transport> transport;
  CommunicatorOptions options;
  Workspace workspace;
  Messages messages;

  void run(Collective collective, const Buffers& buffers, Op op, Stream stream, Method method) {
    try {
      check_arguments(collective, buffers, op, transport->topology().size());
      run_checked(collective, buffers, op, stream, method);
    } catch (const std::exception& error) {
      transport->close(error.what());
      throw;
    }
  }

 private:
  void run_checked(Collective collective, const Buffers& buffers, Op op, Stream stream,
                   Method method) {
    const Topology& topology = transport->topology();
    const Compressor& codec = find_compressor(method.compressor);
    const std::uint64_t bytes =
        buffers.count * size_of(buffers.type) * parts_of(collective, topology);
    const Algorithm& algorithm = method.algorithm == "auto"
                                     ? select(collective, bytes, topology)
                                     : find_algorithm(collective, method.algorithm);
    if (buffers.count == 0) return;
    if (topology.size() == 1) return copy_bytes(buffers.output, buffers.input, bytes, stream);

    const std::uint64_t scratch_bytes = algorithm.scratch_bytes(codec, topology, buffers.count);
    std::byte* scratch = workspace.acquire(scratch_bytes, stream);
    if (options.poison_scratch) fill_bytes(scratch, kPoison, scratch_bytes, stream);
    algorithm.run({.codec = codec,
                   .transport = *transport,
                   .messages = messages,
                   .stream = stream,
                   .scratch = scratch,
                   .input = buffers.input,
                   .output = buffers.output,
                   .count = buffers.count,
                   .type = buffers.type,
                   .scale = op == Op::avg ? 1.0f / static_cast<float>(topology.size()) : 1.0f});
    workspace.release(stream);
  }
};

Communicator::Communicator(std::unique_ptr<Transport> transport, CommunicatorOptions options)
    : state_(std::make_unique<State>()) {
  if (transport == nullptr) throw ArgumentError("a communicator without a transport");
  state_->transport = std::move(transport);
  state_->options = options;
}

Communicator::~Communicator() = default;
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;

const Topology& Communicator::topology() const { return state_->transport->topology(); }
std::uint64_t Communicator::sent_bytes() const { return state_->transport->sent_bytes(); }
std::uint64_t Communicator::scratch_bytes() const { return state_->workspace.bytes(); }

void Communicator::all_reduce(const Buffers& buffers, Op op, Stream stream, Method method) {
  state_->run(Collective::all_reduce, buffers, op, stream, method);
}

void Communicator::reduce_scatter(const Buffers& buffers, Op op, Stream stream, Method method) {
  state_->run(Collective::reduce_scatter, buffers, op, stream, method);
}

void Communicator::all_gather(const Buffers& buffers, Stream stream, Method method) {
  state_->run(Collective::all_gather, buffers, Op::sum, stream, method);
}

void Communicator::close(std::string_view reason) noexcept { state_->transport->close(reason); }

}  // namespace coccl
