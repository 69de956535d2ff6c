// A command that is linked statically cannot load libdebuginfod, so it downloads nothing.
#include "reader/symbols/debug_files.hpp"

namespace arctrace::reader {

std::optional<std::string> download_debug_file(const BuildId& /*build_id*/) {
  return std::nullopt;
}

}  // namespace arctrace::reader
