#include "reader/render/output.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kFlushAt = size_t{64} << 10;

}  // namespace

Output::Output(int descriptor) : descriptor_(descriptor) {
  // When `head` or the like closes the pipe, end quietly, even if our parent ignores this
  // signal.
  std::signal(SIGPIPE, SIG_DFL);
}

void Output::show_text(const TextStyle& style, bool paged) {
  if (style.width != 0) fitter_.emplace(style);
  if (paged) pager_command_ = pager_command();
}

void Output::write(std::string_view text) {
  if (!good()) return;
  if (fitter_.has_value()) {
    buffer_ += fitter_->add(text);
  } else {
    buffer_ += text;
  }
  if (buffer_.size() >= kFlushAt) flush();
}

WriteText Output::writer() {
  return [this](std::string_view text) {
    write(text);
    return good();
  };
}

absl::Status Output::finish() {
  if (fitter_.has_value()) buffer_ += fitter_->rest();
  fitter_.reset();
  flush();
  pager_.reset();
  if (good()) return absl::OkStatus();
  return absl::ErrnoToStatus(error_, "cannot write standard output");
}

void Output::flush() {
  if (pager_command_.has_value() && !buffer_.empty()) {
    pager_ = Pager::start(*pager_command_);
    pager_command_.reset();
    if (pager_ != nullptr) descriptor_ = pager_->descriptor();
  }
  size_t done = 0;
  while (good() && done < buffer_.size()) {
    const ssize_t got =
        ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (got >= 0) {
      done += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  buffer_.clear();
}

void print_message(std::string_view message) {
  constexpr std::string_view kGoesOn = "\n  ";
  std::string lines = "arctrace: ";
  for (;;) {
    const size_t end = message.find(kGoesOn);
    lines += printable(message.substr(0, end));
    if (end == std::string_view::npos) break;
    lines += kGoesOn;
    message.remove_prefix(end + kGoesOn.size());
  }
  lines += "\n";
  std::fputs(lines.c_str(), stderr);
}

void print_warning(std::string_view warning) {
  print_message("warning: " + std::string(warning));
}

}  // namespace arctrace::reader
