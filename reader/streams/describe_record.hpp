// How views that show single records get at the content of a record.
#pragma once

#include <functional>
#include <string>

#include "reader/streams/field_sink.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// Gives the fields of a record to a sink.
using DescribeRecord = std::function<void(const Record& record, FieldSink& out)>;

// The fields of `record` as text.
std::string content_text(const DescribeRecord& describe, const Record& record);

// The fields of `record` as JsonWriter::members() takes them.
std::string content_members(const DescribeRecord& describe, const Record& record);

}  // namespace arctrace::reader
