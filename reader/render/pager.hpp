// The pager that shows text on a terminal page by page.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

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

}  // namespace arctrace::reader
