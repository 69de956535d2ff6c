// Findings, which are breaches of SPEC.md in a trace, in text and in JSON.
#pragma once

#include <string>

#include "reader/streams/json_writer.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// "R3 chunk 12, byte 144: TEXT: it is too short (a record is long enough for ...)";
// one line, escaped.
std::string finding_text(const Finding& finding, const Session& session);

// Member "findings" of the object that is open: an array of rule, message, chunk (of a
// buffer: block) and offset.
void write_findings_json(const Trace& trace, JsonWriter& json);

}  // namespace arctrace::reader
