#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <vector>

#include "bindings.hpp"
#include "coccl/compressor.hpp"

using coccl::Compressor;
using coccl::Fused;

namespace {

std::vector<Compressor> all_compressors() {
  const auto table = coccl::compressors();
  return {table.begin(), table.end()};
}

}  // namespace

void bind_compressor(nb::module_& module) {
  nb::class_<Compressor>(module, "CompressorInfo")
      .def_prop_ro("name", [](const Compressor& c) { return c.name; })
      .def_prop_ro("method", [](const Compressor& c) { return c.method; })
      .def_ro("block", &Compressor::block)
      .def_ro("block_bytes", &Compressor::block_bytes)
      .def_ro("group", &Compressor::group)
      .def_ro("tolerance", &Compressor::tolerance)
      .def_ro("rotated", &Compressor::rotated)
      .def_prop_ro("bits_per_element", &Compressor::bits_per_element);

  module.def("compressors", all_compressors, "Every compressor of this build, sorted by name.");

  module.def(
      "run",
      [](std::string_view compressor, int type, const nb::int_& count, int chunks,
         std::uint64_t raw_stride, std::uintptr_t coded, std::size_t coded_stride, int inputs,
         std::uintptr_t raw_in, std::uintptr_t coded_out, std::uintptr_t raw_out, float scale,
         std::optional<std::uintptr_t> stream) {
        const Fused pass{.coded = pointer<const std::byte>(coded),
                         .coded_stride = coded_stride,
                         .inputs = inputs,
                         .raw_in = pointer(raw_in),
                         .coded_out = pointer<std::byte>(coded_out),
                         .raw_out = pointer(raw_out),
                         .type = static_cast<coccl::DataType>(type),
                         .count = count_of(count),
                         .chunks = chunks,
                         .raw_stride = raw_stride,
                         .scale = scale};
        const nb::gil_scoped_release unlocked;
        coccl::find_compressor(compressor).run(pass, stream_of(stream));
      },
      nb::arg("compressor"), nb::kw_only(), nb::arg("type"), nb::arg("count"),
      nb::arg("chunks") = 1, nb::arg("raw_stride") = 0, nb::arg("coded") = 0,
      nb::arg("coded_stride") = 0, nb::arg("inputs") = 0, nb::arg("raw_in") = 0,
      nb::arg("coded_out") = 0, nb::arg("raw_out") = 0, nb::arg("scale") = 1.0f,
      nb::arg("stream") = nb::none(),
      "One pass of a compressor over raw pointers, as Fused in coccl/compressor.hpp.");

  module.def(
      "encode_emulated",
      [](std::string_view compressor, std::uintptr_t raw_in, std::uintptr_t coded_out,
         const nb::int_& count, int type) {
        const Fused pass{.raw_in = pointer(raw_in),
                         .coded_out = pointer<std::byte>(coded_out),
                         .type = static_cast<coccl::DataType>(type),
                         .count = count_of(count)};
        const nb::gil_scoped_release unlocked;
        coccl::find_compressor(compressor).run(pass, {coccl::Place::emulated, nullptr});
      },
      nb::arg("compressor"), nb::arg("raw_in"), nb::arg("coded_out"), nb::arg("count"),
      nb::arg("type"), "Encodes host memory with 32 emulated lanes, as a warp would.");
}
