# The extension coccl._core. It holds the library and the CUDA runtime, and exports its init function
# alone.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
execute_process(
  COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

file(GLOB binding_sources CONFIGURE_DEPENDS python/*.cpp)
nanobind_add_module(_core STABLE_ABI NB_STATIC NB_SUPPRESS_WARNINGS ${binding_sources})
coccl_target_options(_core)
target_include_directories(_core PRIVATE src)
target_link_libraries(_core PRIVATE coccl)
target_link_options(_core PRIVATE LINKER:--exclude-libs,ALL)
list(JOIN CMAKE_CUDA_ARCHITECTURES "," architectures)
target_compile_definitions(_core PRIVATE COCCL_VERSION="${PROJECT_VERSION}" COCCL_ARCHITECTURES="${architectures}")
install(TARGETS _core LIBRARY DESTINATION coccl COMPONENT python)
