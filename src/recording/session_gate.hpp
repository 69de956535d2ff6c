// Opens and closes the gate of a session.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

#include "src/recorder/buffer/buffer.hpp"

namespace arctrace::recording {

// Opens the gate of a session for the classes `on` and closes it for `off`: bits of enum
// arctrace_gate_bit.
void switch_gate(recorder::Buffer& buffer, uint32_t on, uint32_t off);

// As switch_gate(), for the session of this name. Error: there is no such session.
absl::Status switch_session(const std::string& name, uint32_t on, uint32_t off);

}  // namespace arctrace::recording
