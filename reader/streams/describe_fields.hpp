// Definitions, records of the collector, and records of the kernel, by the fields of
// their bodies.
#pragma once

#include "reader/streams/field_sink.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// Puts each field of the record's body under its name, in the order of the format, and
// shown as fits it. False, and nothing is put, if the record is of another class or of an
// unknown type. REQUIRES: the body is valid.
bool describe_fields(const Record& record, FieldSink& out);

}  // namespace arctrace::reader
