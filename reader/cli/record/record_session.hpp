// Runs a command under a recording session, and ends the recording.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reader/cli/options/record_options.hpp"
#include "reader/cli/record/child_process.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/drain/collector.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recorder/snapshot/flight_recorder.hpp"

namespace arctrace::cli {

// Records options.command and returns its exit status; if a signal ended it, ends this
// process by the same signal. If the command cannot be started, prints why and returns
// what a shell would: 127 if it does not exist, 126 if it cannot be executed. Error:
// there was no session to run it in.
absl::StatusOr<int> record_command(const RecordOptions& options);

// What the file is to say of this recorder. May run programs, to learn what recording
// costs: to be called before the kernel is recorded, which would see them.
RecorderFacts recorder_facts();

// Creates the recorder for the buffer's mode. `flight.recorder`: recorder_facts().
// `resumed`: of another collector, if the session may have had one. Error: the output
// cannot be created, or cannot be cut into files as the options demand.
absl::StatusOr<std::unique_ptr<Recorder>> make_recorder(Buffer& buffer,
                                                        FlightOptions flight,
                                                        const OutputFile& output,
                                                        ResumedSession resumed = {});

// Prints a line each if functions that -P has patched were switched off, if nothing of
// some library was patched, and why, and if small functions were left beside others.
void tell_patches(const CollectorSummary& summary, const RecordOptions& options);

// If the disk had no room for all records, keeps the buffer and prints how to get at
// them.
void keep_unsaved(Buffer& buffer, const CollectorSummary& summary,
                  const std::string& file);

// Whether the file lacks its end. One for which the disk had no room is whole, except for
// records that it counts as lost.
bool is_cut_off(const CollectorSummary& summary);

// Returns at a signal that ends the recording, when `duration_ns` are over (0: never), or
// soon after `is_over` says so. SIGUSR2 takes a snapshot.
void wait_for_end(const SignalScope& signals, uint64_t duration_ns, Recorder& recorder,
                  const std::function<bool()>& is_over);

// Takes a snapshot, and prints its name or why there is none.
void take_snapshot(Recorder& recorder);

// The line that ends a recording: "5 records, 0 lost, ... FILE".
std::string recording_summary_line(const CollectorSummary& summary,
                                   const std::string& file);

}  // namespace arctrace::cli
