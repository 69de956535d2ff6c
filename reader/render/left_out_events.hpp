// How text and JSON say what --where left out.
#pragma once

#include <cstdint>
#include <string>

#include "reader/streams/json_writer.hpp"
#include "reader/trace/event_filter.hpp"

namespace arctrace::reader {

// "--where 'id >= 10' --where 'name ~ a*'", escaped.
std::string where_text(const EventFilter& filter);
// "2 events left out by --where 'id >= 10'", escaped; also if there were none. REQUIRES:
// the filter has conditions.
std::string left_out_events_text(const EventFilter& filter);

// "24 events, instants and counters left out by the recording's filter".
std::string filtered_out_text(uint64_t count);

// What left_out_events_text() says as a line of JSON: an object of type LEFT_OUT with the
// time of the last record, and these members.
void write_left_out_line(const EventFilter& filter, int64_t time_ns, JsonWriter& json);

// Members "events_left_out" and "where", an array of the conditions, of the object that
// is open; none if the filter has no conditions.
void write_left_out_events_json(const EventFilter& filter, JsonWriter& json);

}  // namespace arctrace::reader
