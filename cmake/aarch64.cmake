# Toolchain for what traced programs use: Debian's cross-compiler builds it, and qemu-user
# runs it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

# Header-only libraries, which stand among the build machine's own headers.
set(headers ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64/headers)
file(MAKE_DIRECTORY ${headers})
foreach(library boost doctest)
  file(CREATE_LINK /usr/include/${library} ${headers}/${library} SYMBOLIC)
endforeach()
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${headers})
