#include "src/recording/session_gate.hpp"

#include "src/base/shared_atomics.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::recording {

void switch_gate(recorder::Buffer& buffer, uint32_t on, uint32_t off) {
  const uint32_t gate = IpcAtomics::load_relaxed(buffer.view().control().gate);
  recorder::set_gate(buffer.view(), (gate | on) & ~off);
}

absl::Status switch_session(const std::string& name, uint32_t on, uint32_t off) {
  absl::StatusOr<recorder::Buffer> buffer = recorder::open_session(name);
  if (!buffer.ok()) return buffer.status();
  switch_gate(*buffer, on, off);
  return absl::OkStatus();
}

}  // namespace arctrace::recording
