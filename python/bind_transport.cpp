#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "transport/local.hpp"
#include "transport/nccl.hpp"

using coccl::LocalHub;

void bind_transport(nb::module_& module) {
  nb::class_<LocalHub>(module, "LocalHub")
      .def(
          "__init__",
          [](LocalHub* self, int size, std::vector<int> nodes, double timeout_s) {
            new (self) LocalHub(size, std::move(nodes), coccl::Seconds(timeout_s));
          },
          nb::arg("size"), nb::arg("nodes") = std::vector<int>{}, nb::arg("timeout_s") = 60.0)
      .def("close", &LocalHub::close, nb::arg("reason"), nb::call_guard<nb::gil_scoped_release>(),
           "Ends the group: every call of any rank throws TransportError with the reason.");

  module.def(
      "nccl_unique_id",
      [](const std::string& library) {
        const auto id = coccl::nccl_unique_id(library);
        return nb::bytes(id.data(), id.size());
      },
      nb::arg("library") = "", "128 bytes that name a new group; one rank makes them for all.");

  module.def(
      "nccl_version",
      [](const std::string& library) {
        const auto version = coccl::nccl_version(library);
        return nb::make_tuple(version.number, version.path);
      },
      nb::arg("library") = "",
      "(22809, path) of the NCCL that would be used; UnsupportedError if there is none.");
}
