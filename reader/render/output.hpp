// The command's standard output, buffered and with errors noticed, its pager, and its
// messages.
#pragma once

#include <absl/status/status.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "reader/render/text_style.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {

// $ARCTRACE_PAGER, else $PAGER, else less if it is installed. Nothing if standard output
// is no terminal, or if the variable is empty or "cat".
std::optional<std::string> pager_command();

// A pager that runs, and shows what is written to its pipe on our standard output.
class Pager {
 public:
  // Runs `command` in a shell; less gets the options FRX unless $LESS says otherwise.
  // Null if the shell could not be started.
  static std::unique_ptr<Pager> start(const std::string& command);

  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;
  // Closes the pipe, and waits until the user has left the pager. Meanwhile Ctrl-C is the
  // pager's.
  ~Pager();

  int descriptor() const { return pipe_; }

 private:
  Pager(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) {}

  const pid_t pid_;
  const int pipe_;
};

// The one way a subcommand writes its result.
class Output {
 public:
  explicit Output(int descriptor = 1);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Says that the output is text that people read: lines are cut to the width of `style`,
  // and if `paged` they appear in the user's pager if standard output is a terminal. To
  // be called before the first write; the pager starts once there is something to show.
  void show_text(const TextStyle& style, bool paged);

  void write(std::string_view text);
  // Returns a function that calls write(), and returns good(). This object must outlive
  // it.
  WriteText writer();
  // False once a write failed: then it is useless to produce more.
  bool good() const { return error_ == 0; }
  // Writes what is buffered, and waits until the user has left the pager. Error: a write
  // failed, for example because the disk is full.
  absl::Status finish();

 private:
  void flush();

  int descriptor_;
  std::optional<LineFitter> fitter_;
  std::optional<std::string> pager_command_;
  std::unique_ptr<Pager> pager_;
  int error_ = 0;  // errno of the first write that failed
  std::string buffer_;
};

// How much is written to standard error: errors alone; messages and warnings as well; or
// also details of how the command does its work.
enum class Verbosity : uint8_t { kQuiet, kUsual, kVerbose };
// To be called before the first line is printed.
void set_verbosity(Verbosity verbosity);
Verbosity verbosity();

// Writes "arctrace: ERROR" and a newline to standard error, without characters that
// control a terminal. Text from a trace that could contain backslashes is escaped before.
// The line may go on in further lines, if these begin with two spaces.
void print_error(std::string_view error);

// Writes the same line for a message that is no error, unless the command is quiet.
void print_message(std::string_view message);

// Writes the same line for "warning: WARNING", unless the command is quiet.
void print_warning(std::string_view warning);

// Writes the same line if the command is verbose.
void print_detail(std::string_view detail);

}  // namespace arctrace::reader
