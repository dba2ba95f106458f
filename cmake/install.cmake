# Installs what a C++ user needs: find_package(coccl), then link coccl::coccl.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/coccl)
install(TARGETS coccl EXPORT coccl_targets COMPONENT cpp)
install(DIRECTORY include/coccl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cpp)
install(EXPORT coccl_targets NAMESPACE coccl:: FILE coccl_targets.cmake DESTINATION ${package_dir} COMPONENT cpp)
configure_package_config_file(
  cmake/coccl-config.cmake.in ${PROJECT_BINARY_DIR}/generated/coccl-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/generated/coccl-config-version.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES ${PROJECT_BINARY_DIR}/generated/coccl-config.cmake ${PROJECT_BINARY_DIR}/generated/coccl-config-version.cmake
  DESTINATION ${package_dir}
  COMPONENT cpp)
