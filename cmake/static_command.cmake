# ARCTRACE_STATIC: the command holds all libraries, libc included, for an archive that needs
# none where it is unpacked. Debian has static libraries beside the shared ones, but Abseil's
# CMake package names only these. Its targets are made here, at the top, so that all
# directories use them.
option(ARCTRACE_STATIC "Link the command statically" OFF)
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
endif()
