// What the kernel writer's records say.
#pragma once

#include "reader/render/field_sink.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::cli {

// False if the record is not one of the kernel's, of a known type.
bool describe_kernel(const reader::Record& record, FieldSink& out);

}  // namespace arctrace::cli
