// A frame for what the shim does in a thread of the program.
#pragma once

#include <arctrace/arctrace.h>

#include <cstdint>

#include "writer_shim/plt/call_table.hpp"

namespace arctrace::shim {

// While the object exists, the thread is in a frame of its own, by which readers know
// that it works for the tracer: its time and its system calls are not the program's.
class OwnWork {
 public:
  // Defines the frame's name, so that a fork child need not.
  static void define_name() { key(); }

  explicit OwnWork(bool is_recorded) : key_(is_recorded ? key() : 0) {
    if (key_ != 0) arctrace_enter(key_);
  }
  ~OwnWork() {
    if (key_ != 0) arctrace_exit(key_);
  }
  OwnWork(const OwnWork&) = delete;
  OwnWork& operator=(const OwnWork&) = delete;

 private:
  // The key is a library's, because the frame is no function of the program's own.
  static uint64_t key() {
    return arctrace_name_key(call_name_id("[arctrace]")) | ARCTRACE_FRAME_LIBRARY_BIT;
  }

  const uint64_t key_;
};

}  // namespace arctrace::shim
