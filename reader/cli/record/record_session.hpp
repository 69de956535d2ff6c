// Running a command under a recording session of its own.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "reader/cli/options/record_options.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recorder/snapshot/flight_recorder.hpp"

namespace arctrace::cli {

// Records options.command and returns its exit status; if a signal ended it, ends this
// process by the same signal. A command that can't be started is said, and exits as a
// shell would: 127 if it is not there, 126 if it can't be run. An error: there was no
// session to run it in; to be printed as one line.
absl::StatusOr<int> record_command(const RecordOptions& options);

// The variables, as NAME=VALUE, with which a program records into options.session.
absl::StatusOr<std::vector<std::string>> session_environment(
    const RecordOptions& options);

// The recorder that the buffer's mode wants. `resumed`: as for Collector. An error: the
// output can't be had, or can't be cut into files as the options say.
absl::StatusOr<std::unique_ptr<Recorder>> make_recorder(Buffer& buffer,
                                                        FlightOptions flight,
                                                        const std::string& output,
                                                        bool resumed = false);

// A line for each program that traced processes executed and that could not be traced.
void warn_of_untraced(const CollectorSummary& summary);

// Takes a snapshot and says its name, or why there is none.
void take_snapshot(Recorder& recorder);

// The one line that ends a recording: "5 records, 0 lost, ... FILE".
std::string recording_summary_line(const CollectorSummary& summary,
                                   const std::string& file);

}  // namespace arctrace::cli
