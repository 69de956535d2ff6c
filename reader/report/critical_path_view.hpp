// The view `critical-path`: what the time from begin to end depended on, step by step.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

std::unique_ptr<View> make_critical_path_view(const ViewSettings& settings);

}  // namespace arctrace::reader
