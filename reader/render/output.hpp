// The command's standard output, buffered and with errors noticed, and its messages.
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "reader/render/line_fitter.hpp"
#include "reader/render/pager.hpp"
#include "reader/streams/write_text.hpp"

namespace arctrace::reader {

// The one way a subcommand writes its result.
class Output {
 public:
  explicit Output(int descriptor = 1);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // What is written is text that people read: lines are cut to the width of `style`, and
  // if `paged` they appear in the user's pager if standard output is a terminal. To be
  // called before the first write; the pager starts once there is something to show.
  void show_text(const TextStyle& style, bool paged);

  void write(std::string_view text);
  // Calls write(), and returns good(). This object must outlive it.
  WriteText writer();
  // False once a write failed: there is no use in producing more.
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

// Writes "arctrace: MESSAGE" and a newline to standard error, without what would control
// a terminal. What comes from a trace and could contain backslashes is escaped before.
// The message may go on in further lines, if these begin with two spaces.
void print_message(std::string_view message);

// The same for "warning: WARNING".
void print_warning(std::string_view warning);

}  // namespace arctrace::reader
