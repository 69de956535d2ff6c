# ARCTRACE_STATIC: the command contains all libraries, libc included, for an archive that needs
# none where it is unpacked. Debian has static libraries beside the shared ones, but Abseil's
# CMake package names only the shared ones. Static targets are made here, at the top, so that
# all directories use them.
option(ARCTRACE_STATIC "Link the command statically" OFF)
set(ARCTRACE_ZYDIS_SOURCE "" CACHE PATH
  "Zydis' source, from which a static command has its decoder")
if(ARCTRACE_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  find_package(absl REQUIRED)
  get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
  list(FILTER imported INCLUDE REGEX ^absl::)
  foreach(target ${imported})
    get_target_property(location ${target} IMPORTED_LOCATION_NONE)
    if(location)
      string(REGEX REPLACE [[\.so.*]] .a location ${location})
      set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_NONE ${location}
        IMPORTED_SONAME_NONE "")
    endif()
  endforeach()
  # Debian has no static Zydis, and only its decoder is used.
  set(decoder ${ARCTRACE_ZYDIS_SOURCE}/src/Decoder.c ${ARCTRACE_ZYDIS_SOURCE}/src/DecoderData.c
    ${ARCTRACE_ZYDIS_SOURCE}/src/Register.c ${ARCTRACE_ZYDIS_SOURCE}/src/SharedData.c)
  add_library(arctrace_zydis STATIC ${decoder})
  target_include_directories(arctrace_zydis
    PRIVATE ${ARCTRACE_ZYDIS_SOURCE}/src PUBLIC ${ARCTRACE_ZYDIS_SOURCE}/include)
  target_compile_definitions(arctrace_zydis PUBLIC ZYDIS_STATIC_BUILD ZYCORE_STATIC_BUILD)
  add_library(Zydis::Zydis ALIAS arctrace_zydis)
endif()
