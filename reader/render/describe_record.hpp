// How views that show single records are told what those say.
#pragma once

#include <functional>
#include <string>

#include "reader/trace/record.hpp"

namespace arctrace::reader {

// What a record that is not of the stack says: appended to `out` as text, or as members
// of a JSON object that is open and has some: ",\"name\":1".
using DescribeRecord =
    std::function<void(const Record& record, bool json, std::string& out)>;

}  // namespace arctrace::reader
