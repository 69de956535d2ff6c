// The options of commands that record: of the buffer and the kernel's records
// (buffer_options.cpp), and of what is recorded of which programs (filter_options.cpp).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reader/cli/options/options.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/snapshot/flight_recorder.hpp"
#include "src/recording/options.hpp"
#include "src/recording/patterns/filters.hpp"

namespace arctrace::cli {

// Adds --buffer-size. In all these functions, the object in which values are stored must
// outlive `app`.
void add_buffer_size_option(CLI::App& app, recorder::BufferOptions& buffer);
// Adds --buffer-size and the other options of the buffer.
void add_buffer_options(CLI::App& app, recorder::BufferOptions& buffer);
void add_pin_option(CLI::App& app, recorder::PinPolicy& pin);
void add_snapshot_options(CLI::App& app, recorder::FlightOptions& flight);

// --collector-cpu and --rt-priority.
void add_collector_options(CLI::App& app, recorder::CollectorThread& runs);

// --clock, --clock-resolution and --clock-cpu. clock_problem() says what is wrong with
// their values.
void add_clock_options(CLI::App& app, recording::RecordOptions& options);

// Why these options of the clock can't be used together, or with others of these options;
// empty if they can.
std::string clock_problem(const recording::RecordOptions& options);

// Sets the resolution of the clock word, if there is one and none was asked for.
void complete_clock_options(recorder::BufferOptions& buffer);

// --keep=TIME, above 0.
void add_keep_option(CLI::App& app, uint64_t& ns);

// --duration=TIME, above 0. `what`: the subject of the sentence in the help that says
// what ends then.
void add_duration_option(CLI::App& app, uint64_t& ns, const std::string& what);

// Options of the records that the kernel writes.
void add_kernel_options(CLI::App& app, recording::KernelOptions& options);

// Adds the options that say what is recorded of a program, and of which programs.
// `options` must outlive `app`.
void add_traced_options(CLI::App& app, recording::RecordOptions& options);

// -p PID: processes that run already.
void add_joined_option(CLI::App& app, std::vector<pid_t>& pids, const std::string& help);

// --snapshot-when.
CLI::Option* add_snapshot_when_option(CLI::App& app,
                                      recording::CallFilterOptions& options);

// Adds the other options of record, env and ctl that filter the recorded functions and
// arguments. recording::find_problem() says what is wrong with their values.
void add_call_filter_options(CLI::App& app, recording::CallFilterOptions& options);

// Adds options that say which events, and which processes' and threads' records, are
// recorded. Returns the options, which `filter` must outlive. Processes and threads have
// numbers only while they run, so `with_threads` is for a session that exists.
std::vector<CLI::Option*> add_record_filter_options(
    CLI::App& app, recording::RecordFilterOptions& filter, bool with_threads);

// Adds the option `flag` CLASS,...: sets `bits` of enum arctrace_gate_bit for functions,
// events, marks, kernel or all.
CLI::Option* add_classes_option(CLI::App& app, const std::string& flag, uint32_t& bits,
                                const std::string& help);
// Adds the same option, which also sets bits of enum arctrace_kernel_event for syscalls,
// page-faults, signals, contention, block-io and irq.
CLI::Option* add_classes_and_events_option(CLI::App& app, const std::string& flag,
                                           uint32_t& bits, uint32_t& events,
                                           const std::string& help);

}  // namespace arctrace::cli
