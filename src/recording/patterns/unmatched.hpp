// Warnings about filters that match nothing: patterns of functions, and events, names and
// fields. A filter that matches nothing makes a trace without events, which looks like
// that of a program without any.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reader/trace/buffer_state.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/event_fields.hpp"
#include "src/recording/patterns/filters.hpp"
#include "src/recording/patterns/program_functions.hpp"

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

// The names that programs have defined: those of instants, counters, scopes and others.
using DefinedNames = std::set<std::string, std::less<>>;

// As unmatched_events(), for instants and counters. A name does not show what it is of,
// so there is no line about a glob that matches any name.
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

// The patterns that a function of the session matches, one bit each in the order of the
// control page's word.
uint64_t matched_patterns(const CallFilterOptions& options,
                          const SessionFunctions& session);

// Whether no function of a program, or of a library, was patched in some process at all,
// for a reason that the caller tells.
struct RefusedPatches {
  bool programs = false, libraries = false;
};

// A line for each pattern that no function matched: why, if the program `command` has
// such a function, or else similar names of its functions. `matched`: the control page's
// word. There is no line about a pattern of -P that only `refused` has kept from
// matching.
std::vector<std::string> unmatched_patterns(const CallFilterOptions& options,
                                            uint64_t matched, const std::string& command,
                                            RefusedPatches refused = {});

}  // namespace arctrace::recording
