#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/select.hpp"
#include "base/nccl_table.hpp"
#include "bindings.hpp"
#include "coccl/communicator.hpp"
#include "coccl/error.hpp"
#include "transport/external.hpp"
#include "transport/local.hpp"
#include "transport/nccl.hpp"

using coccl::AlgorithmInfo;
using coccl::Buffers;
using coccl::Communicator;
using coccl::DataType;
using coccl::Method;
using coccl::Op;

namespace {

coccl::Collective collective_of(std::string_view name) {
  using enum coccl::Collective;
  for (const auto collective : {all_reduce, reduce_scatter, all_gather}) {
    if (name_of(collective) == name) return collective;
  }
  throw coccl::ArgumentError("unknown collective \"" + std::string(name) +
                             "\"; known: all_reduce, reduce_scatter, all_gather");
}

std::vector<AlgorithmInfo> all_algorithms() {
  const auto table = coccl::algorithms();
  return {table.begin(), table.end()};
}

Communicator local(std::shared_ptr<coccl::LocalHub> hub, int rank, bool poison_scratch) {
  return Communicator(coccl::make_local(std::move(hub), rank), {.poison_scratch = poison_scratch});
}

// A Python callable that C++ may hold, copy and drop without the GIL.
std::shared_ptr<nb::callable> held(nb::callable callable) {
  return {new nb::callable(std::move(callable)), [](nb::callable* last) {
            const nb::gil_scoped_acquire locked;
            delete last;
          }};
}

template <class Message>
nb::list addresses_of(std::span<const Message> messages) {
  nb::list list;
  for (const Message& message : messages) {
    list.append(nb::make_tuple(reinterpret_cast<std::uintptr_t>(message.data), message.bytes,
                               message.peer));
  }
  return list;
}

Communicator external(nb::callable exchange, std::optional<nb::callable> all_gather, int rank,
                      int size, std::vector<int> nodes, bool poison_scratch) {
  coccl::ExternalCalls calls;
  calls.exchange = [call = held(std::move(exchange))](std::span<const coccl::Send> sends,
                                                      std::span<const coccl::Recv> recvs) {
    const nb::gil_scoped_acquire locked;
    (*call)(addresses_of(sends), addresses_of(recvs));
  };
  if (all_gather) {
    calls.all_gather = [call = held(std::move(*all_gather))](const void* send, void* recv,
                                                             std::size_t bytes) {
      const nb::gil_scoped_acquire locked;
      (*call)(reinterpret_cast<std::uintptr_t>(send), reinterpret_cast<std::uintptr_t>(recv),
              bytes);
    };
  }
  return Communicator(
      coccl::make_external(coccl::Topology(rank, size, std::move(nodes)), std::move(calls)),
      {.poison_scratch = poison_scratch});
}

Communicator over_nccl(const nb::bytes& unique_id, int rank, int size, std::vector<int> nodes,
                       double timeout_s, const std::string& library, bool poison_scratch) {
  coccl::NcclUniqueId id;
  if (unique_id.size() != id.size()) {
    throw coccl::ArgumentError("a unique id of " + std::to_string(unique_id.size()) +
                               " bytes; accepted: " + std::to_string(id.size()));
  }
  std::copy_n(unique_id.c_str(), id.size(), id.begin());
  const nb::gil_scoped_release unlocked;
  return Communicator(
      coccl::make_nccl({id, rank, size, std::move(nodes), coccl::Seconds(timeout_s)},
                       coccl::load_nccl(library)),
      {.poison_scratch = poison_scratch});
}

Buffers buffers_of(std::uintptr_t input, std::uintptr_t output, const nb::int_& count, int type) {
  return {pointer(input), pointer(output), count_of(count), static_cast<DataType>(type)};
}

using Reduction = void (Communicator::*)(const Buffers&, Op, coccl::Stream, Method);

template <Reduction reduction>
void reduce(Communicator& self, std::uintptr_t input, std::uintptr_t output, const nb::int_& count,
            int type, int op, std::optional<std::uintptr_t> stream, std::string_view compressor,
            std::string_view algorithm) {
  const Buffers buffers = buffers_of(input, output, count, type);
  const nb::gil_scoped_release unlocked;
  (self.*reduction)(buffers, static_cast<Op>(op), stream_of(stream), {compressor, algorithm});
}

void gather(Communicator& self, std::uintptr_t input, std::uintptr_t output, const nb::int_& count,
            int type, std::optional<std::uintptr_t> stream, std::string_view compressor,
            std::string_view algorithm) {
  const Buffers buffers = buffers_of(input, output, count, type);
  const nb::gil_scoped_release unlocked;
  self.all_gather(buffers, stream_of(stream), {compressor, algorithm});
}

}  // namespace

void bind_communicator(nb::module_& module) {
  nb::class_<AlgorithmInfo>(module, "AlgorithmInfo")
      .def_prop_ro("collective", [](const AlgorithmInfo& a) { return name_of(a.collective); })
      .def_prop_ro("name", [](const AlgorithmInfo& a) { return a.name; })
      .def_prop_ro("story", [](const AlgorithmInfo& a) { return a.story; })
      .def(
          "encodings",
          [](const AlgorithmInfo& a, int size, std::vector<int> nodes) {
            return a.encodings(coccl::Topology(0, size, std::move(nodes)));
          },
          nb::arg("size"), nb::arg("nodes") = std::vector<int>{},
          "Most times that one element is encoded on its way.");

  module.def("algorithms", all_algorithms, "Every algorithm of this build.");

  module.def(
      "select",
      [](std::string_view collective, std::uint64_t bytes, int size, std::vector<int> nodes) {
        return coccl::select(collective_of(collective), bytes,
                             coccl::Topology(0, size, std::move(nodes)))
            .info.name;
      },
      nb::arg("collective"), nb::arg("bytes"), nb::arg("size"),
      nb::arg("nodes") = std::vector<int>{},
      "The algorithm that \"auto\" means; bytes are those of the larger buffer, uncompressed.");

  nb::class_<Communicator>(module, "Communicator")
      .def_static("local", local, nb::arg("hub"), nb::arg("rank"),
                  nb::arg("poison_scratch") = false)
      .def_static("nccl", over_nccl, nb::arg("unique_id"), nb::arg("rank"), nb::arg("size"),
                  nb::arg("nodes") = std::vector<int>{}, nb::arg("timeout_s") = 600.0,
                  nb::arg("library") = "", nb::arg("poison_scratch") = false)
      .def_static("external", external, nb::arg("exchange"), nb::arg("all_gather").none(),
                  nb::arg("rank"), nb::arg("size"), nb::arg("nodes") = std::vector<int>{},
                  nb::arg("poison_scratch") = false)
      .def("all_reduce", reduce<&Communicator::all_reduce>, nb::arg("input"), nb::arg("output"),
           nb::arg("count"), nb::arg("type"), nb::arg("op"), nb::arg("stream").none(),
           nb::arg("compressor"), nb::arg("algorithm"))
      .def("reduce_scatter", reduce<&Communicator::reduce_scatter>, nb::arg("input"),
           nb::arg("output"), nb::arg("count"), nb::arg("type"), nb::arg("op"),
           nb::arg("stream").none(), nb::arg("compressor"), nb::arg("algorithm"))
      .def("all_gather", gather, nb::arg("input"), nb::arg("output"), nb::arg("count"),
           nb::arg("type"), nb::arg("stream").none(), nb::arg("compressor"), nb::arg("algorithm"))
      .def_prop_ro("rank", [](const Communicator& self) { return self.topology().rank(); })
      .def_prop_ro("size", [](const Communicator& self) { return self.topology().size(); })
      .def_prop_ro("sent_bytes", &Communicator::sent_bytes)
      .def_prop_ro("scratch_bytes", &Communicator::scratch_bytes)
      .def("close", &Communicator::close, nb::arg("reason"),
           nb::call_guard<nb::gil_scoped_release>());
}
