// For a command that is linked statically, which cannot load libdebuginfod.
#include "reader/symbols/debuginfod.hpp"

namespace arctrace::reader {

std::optional<std::string> download_debug_file(const BuildId& /*build_id*/) {
  return std::nullopt;
}

}  // namespace arctrace::reader
