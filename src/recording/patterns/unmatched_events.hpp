// Warnings for what a record filter names and no program has: a filter that matches
// nothing leaves a trace without events, which looks like a program without any.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reader/trace/buffer_state.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/event_filter.hpp"
#include "src/recording/patterns/record_filter.hpp"

namespace arctrace::recording {

// The events of the API that programs have defined: for each name its lowest level.
using EventLevels = std::map<std::string, uint32_t>;

// A line for each glob of `filter` that matches no event, with names that look like it,
// for a level that no event has, and for a condition that none can meet; or one if each
// matches, but all of them together admit none. Empty: the filter admits some event, or
// is not about events.
std::vector<std::string> unmatched_events(const RecordFilterOptions& filter,
                                          const EventLevels& events,
                                          const reader::FieldTypes& fields);

// What programs have named: instants, counters, scopes and others.
using DefinedNames = std::set<std::string, std::less<>>;

// The same of instants and counters. A name tells not what it is of, so a glob that
// matches any is not complained of.
std::vector<std::string> unmatched_instants(const RecordFilterOptions& filter,
                                            const DefinedNames& names);

// The events and names that a session's processes have defined, as far as its buffer has
// the definitions.
EventLevels events_of(const reader::Definitions& definitions);
DefinedNames names_of(const reader::Definitions& definitions);

// A line for each process and thread of `filter` that does not write into the buffer at
// present.
std::vector<std::string> unmatched_threads(const RecordFilterOptions& filter,
                                           const reader::BufferState& buffer);

}  // namespace arctrace::recording
