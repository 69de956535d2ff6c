# ARCTRACE_STATIC_ABSEIL: the command holds Abseil, for an archive that needs none where it is
# unpacked. Debian has static libraries beside the shared ones, but its CMake package names
# only these. The targets are made here, at the top, so that all directories use them.
option(ARCTRACE_STATIC_ABSEIL "Link the command with Abseil's static libraries" OFF)
if(ARCTRACE_STATIC_ABSEIL)
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
