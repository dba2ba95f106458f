#include <exception>

#include "bindings.hpp"
#include "coccl/error.hpp"

namespace {

void raise(const char* type, const std::exception& error) {
  const nb::object python_type = nb::module_::import_("coccl.errors").attr(type);
  PyErr_SetString(python_type.ptr(), error.what());
}

void translate(const std::exception_ptr& exception, void*) {
  try {
    std::rethrow_exception(exception);
  } catch (const coccl::ArgumentError& error) {
    raise("ArgumentError", error);
  } catch (const coccl::UnsupportedError& error) {
    raise("UnsupportedError", error);
  } catch (const coccl::CudaError& error) {
    raise("CudaError", error);
  } catch (const coccl::TransportError& error) {
    raise("TransportError", error);
  } catch (const coccl::Error& error) {
    raise("Error", error);
  }
}

}  // namespace

void bind_error(nb::module_&) { nb::register_exception_translator(translate); }

std::uint64_t count_of(const nb::int_& count) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(count.ptr(), &overflow);
  if (overflow != 0 || value < 0) {
    throw coccl::ArgumentError("count " + std::string(nb::str(count).c_str()) +
                               "; accepted: 0 to 2^63 - 1");
  }
  return static_cast<std::uint64_t>(value);
}
