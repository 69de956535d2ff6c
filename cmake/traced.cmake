# arctrace_traced: how code is compiled that is loaded into traced programs. It has no
# exceptions, RTTI, guarded statics or stack protector, because each needs a runtime that the
# program may not have; general registers only, so that the program's vector and x87 state
# survives a hook unsaved; and initial-exec TLS, because the dynamic model calls
# __tls_get_addr, which may allocate. The checks of _FORTIFY_SOURCE, which distributions set,
# are off, because they call functions that only glibc has.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(ARCTRACE_MACHINE_OPTIONS -fcf-protection=full)
else()
  # x18 may be a shadow stack's pointer, which code that knows nothing of it must leave alone.
  # Linkers make no unwind tables for PLT entries, in which a signal may arrive, so calls avoid
  # the PLT.
  set(ARCTRACE_MACHINE_OPTIONS -mbranch-protection=standard -ffixed-x18 -fno-plt)
endif()
add_library(arctrace_traced INTERFACE)
target_compile_options(arctrace_traced INTERFACE
  -fvisibility=hidden -fno-stack-protector -ftls-model=initial-exec
  -mgeneral-regs-only -fno-tree-loop-distribute-patterns -fno-sanitize=all
  -fno-instrument-functions -U_FORTIFY_SOURCE ${ARCTRACE_MACHINE_OPTIONS}
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics
    -fvisibility-inlines-hidden>)
# -Bsymbolic-functions, not -Bsymbolic: arctrace_gate is data, which a program may have in
# a copy relocation.
target_link_options(arctrace_traced INTERFACE
  -static-libgcc
  LINKER:-Bsymbolic-functions,-z,now,-z,relro,-z,defs,-z,nodelete,-z,noexecstack,--gc-sections
  LINKER:-T,${CMAKE_CURRENT_LIST_DIR}/large_tables.ld)

# arctrace_traced_library(TARGET): link TARGET as C, so that no C++ runtime
# becomes one of its dependencies.
function(arctrace_traced_library target)
  target_link_libraries(${target} PRIVATE arctrace_warnings arctrace_traced)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
  set_property(TARGET ${target} APPEND PROPERTY
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/large_tables.ld)
endfunction()
