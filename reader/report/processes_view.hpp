// The view `processes`: the tree of commands, how each ended, and what it took; with the
// kernel's records also how long threads waited for a CPU, and requests for a disk.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

std::unique_ptr<View> make_processes_view(const ViewSettings& settings);

}  // namespace arctrace::reader
