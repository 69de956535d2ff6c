# cmake --install: the libraries, the CLI, the headers, pkg-config's files and the CMake package Arctrace.
# No installed file contains an absolute path: the tree may be moved as a whole.
include(CMakePackageConfigHelpers)

# Only the command uses the shim, so packages put it into a directory of its own.
set(ARCTRACE_SHIM_DIRECTORY "" CACHE STRING
  "Directory of the shim below the libraries' one: empty or arctrace")
# The shim finds libarctrace.so.0 beside itself, or beside its directory, wherever the traced
# program looks for libraries.
set_target_properties(arctrace-shim PROPERTIES
  INSTALL_RPATH $<IF:$<BOOL:${ARCTRACE_SHIM_DIRECTORY}>,$ORIGIN/..,$ORIGIN>)
install(TARGETS arctrace EXPORT ArctraceTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS arctrace-shim
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/${ARCTRACE_SHIM_DIRECTORY})
install(TARGETS ${ARCTRACE_COST_PROBES}
  RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/${ARCTRACE_SHIM_DIRECTORY})
# A static command has no library of its own.
if(TARGET arctrace-reader)
  install(TARGETS arctrace-reader EXPORT ArctraceReaderTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
install(TARGETS arctrace-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/arctrace
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Arctrace)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/ArctraceConfig.cmake.in ${PROJECT_BINARY_DIR}/ArctraceConfig.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 each minor version may change the interface.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/ArctraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT ArctraceTargets NAMESPACE arctrace:: DESTINATION ${package_dir})
# The reader's targets are in a file of their own, because packages have each library apart.
if(TARGET arctrace-reader)
  install(EXPORT ArctraceReaderTargets NAMESPACE arctrace:: DESTINATION ${package_dir})
endif()
install(FILES
  ${PROJECT_BINARY_DIR}/ArctraceConfig.cmake ${PROJECT_BINARY_DIR}/ArctraceConfigVersion.cmake
  DESTINATION ${package_dir})

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir} OUTPUT_VARIABLE prefix_from_pkgconfig)
foreach(library arctrace arctrace-reader)
  if(TARGET ${library})
    configure_file(
      ${CMAKE_CURRENT_LIST_DIR}/${library}.pc.in ${PROJECT_BINARY_DIR}/${library}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${library}.pc DESTINATION ${pkgconfig_dir})
  endif()
endforeach()
