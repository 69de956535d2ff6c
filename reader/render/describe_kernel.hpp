// The content of the kernel writer's records.
#pragma once

#include "reader/render/field_sink.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::cli {

using reader::FieldSink;

// False: `record` is not a record of the kernel writer of a known type.
bool describe_kernel(const reader::Record& record, FieldSink& out);

}  // namespace arctrace::cli
