// The environment variables by which `arctrace record` hands its session to the programs
// it starts, and by which a traced program hands it on to those that it starts itself.
#pragma once

#include <cstddef>

namespace arctrace::shim {

inline constexpr char kSessionVariable[] = "ARCTRACE_SESSION";  // the buffer's path
inline constexpr char kOptionsVariable[] = "ARCTRACE_OPTIONS";  // see options.hpp
inline constexpr char kPreloadVariable[] = "LD_PRELOAD";        // names the shim
// Set on machines where the shim cannot have slots bound at their first call.
inline constexpr char kBindNowVariable[] = "LD_BIND_NOW";

// The size that Linux permits for one "NAME=VALUE", its final zero included, where pages
// have 4 KiB. It permits more where they are larger.
inline constexpr size_t kVariableBytesMax = size_t{128} << 10;

}  // namespace arctrace::shim
