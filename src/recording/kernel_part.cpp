#include "src/recording/kernel_part.hpp"

#include <string>
#include <utility>

namespace arctrace::recording {

absl::StatusOr<KernelPart> load_kernel_part(const Buffer& buffer, uint32_t wanted,
                                            KernelRequests::Processes processes,
                                            Events& events) {
  absl::StatusOr<KernelWriter> writer = KernelWriter::attach(buffer, wanted);
  if (!writer.ok()) return writer.status();
  KernelPart part;
  part.writer = std::make_unique<KernelWriter>(*std::move(writer));
  part.requests = std::make_unique<KernelRequests>(
      buffer.view(), *part.writer, wanted, processes,
      [&events](const std::string& line) { events.warn(line); });
  return part;
}

}  // namespace arctrace::recording
