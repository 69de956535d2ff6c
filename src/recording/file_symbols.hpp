// Stores the names of functions in the file of a recording that has ended, so that it can
// be read where the programs are not.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "src/recorder/drain/recorder.hpp"
#include "src/recording/child_process.hpp"
#include "src/recording/events.hpp"
#include "src/recording/options.hpp"

namespace arctrace::recording {

// Whose functions they are.
struct Recorded {
  std::vector<pid_t> pids;  // that were joined: their root directories are searched, too
  int64_t owner = -1;       // the user whose processes they are; -1: this one
};

// To be called after recorder.finish(), whose `summary` gets the bytes that the file
// grows by. Does nothing if the user wants no names, or the file cannot be read: a pipe,
// or one that is cut off. A process of its own finds the names, and is ended after two
// seconds of CPU time, or when a signal that ends this process comes: then the file has
// no names, and `events` is told so. The file is whole in any case.
void store_symbols(recorder::Recorder& recorder, const OutputFile& output,
                   const Recorded& recorded, const SignalScope& signals,
                   recorder::CollectorSummary& summary, Events& events);

}  // namespace arctrace::recording
