// What to do if a recording has none of the program's own functions.
#pragma once

#include <cstddef>
#include <string>

#include "reader/render/enabled_list.hpp"
#include "reader/replay/replay.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/summary.hpp"

namespace arctrace::reader {

// "functions of server itself are not recorded: record it with -P ." Empty if one was
// recorded, or may be among what is missing. Of a finished replay; what is null is not
// known. `width`: in so many columns, 0 for any number.
std::string own_functions_hint(const Replay& replay, const Session* session,
                               const Summary* summary, const EnabledList* enabled,
                               size_t width);

}  // namespace arctrace::reader
