#include "coccl/types.hpp"

#include <string>

#include "coccl/error.hpp"

namespace coccl {

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
      return 1;
    case DataType::float16:
    case DataType::bfloat16:
      return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32:
      return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64:
      return 8;
  }
  throw ArgumentError("unknown data type " + std::to_string(static_cast<int>(type)) +
                      "; known: 0 to 9, as ncclDataType_t");
}

std::string_view name_of(DataType type) {
  switch (type) {
    case DataType::int8:
      return "int8";
    case DataType::uint8:
      return "uint8";
    case DataType::int32:
      return "int32";
    case DataType::uint32:
      return "uint32";
    case DataType::int64:
      return "int64";
    case DataType::uint64:
      return "uint64";
    case DataType::float16:
      return "float16";
    case DataType::float32:
      return "float32";
    case DataType::float64:
      return "float64";
    case DataType::bfloat16:
      return "bfloat16";
  }
  return "unknown";
}

std::string_view name_of(Op op) {
  switch (op) {
    case Op::sum:
      return "sum";
    case Op::prod:
      return "prod";
    case Op::max:
      return "max";
    case Op::min:
      return "min";
    case Op::avg:
      return "avg";
  }
  return "unknown";
}

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_gather:
      return "all_gather";
  }
  return "unknown";
}

}  // namespace coccl
