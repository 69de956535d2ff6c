// With whose rights the files are opened that a trace names: modules, debug files.
#pragma once

#include <memory>
#include <string>

#include "src/recorder/jit/process_rights.hpp"

namespace arctrace::cli {

// If this process is root's and the trace at `path` is another user's, who may have
// written any name into it, this thread has that user's rights as long as the result
// lives. Else null: there is nothing to give up.
std::unique_ptr<ActingWithRights> act_as_owner(const std::string& path);

}  // namespace arctrace::cli
