#include "reader/cli/record/kernel_part.hpp"

#include <utility>

#include "reader/render/output.hpp"

namespace arctrace::cli {

absl::StatusOr<KernelPart> load_kernel_part(const Buffer& buffer, uint32_t events,
                                            KernelRequests::Processes processes) {
  absl::StatusOr<KernelWriter> writer = KernelWriter::attach(buffer, events);
  if (!writer.ok()) return writer.status();
  KernelPart part;
  part.writer = std::make_unique<KernelWriter>(*std::move(writer));
  part.requests = std::make_unique<KernelRequests>(buffer.view(), *part.writer, events,
                                                   processes, reader::print_warning);
  return part;
}

}  // namespace arctrace::cli
