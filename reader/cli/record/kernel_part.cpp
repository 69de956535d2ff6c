#include "reader/cli/record/kernel_part.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <utility>

#include "reader/render/output.hpp"

namespace arctrace::cli {

absl::StatusOr<KernelPart> load_kernel_part(const Buffer& buffer,
                                            const KernelEvents& events,
                                            KernelRequests::Processes processes) {
  absl::StatusOr<KernelWriter> writer = KernelWriter::attach(buffer, events);
  if (!writer.ok()) return writer.status();
  if (!writer->missing().empty()) {
    reader::print_warning(absl::StrCat(
        "--kernel=irq: this kernel has no tracepoints for interrupts of the kinds ",
        absl::StrJoin(writer->missing(), ", "), ", which are not recorded"));
  }
  KernelPart part;
  part.writer = std::make_unique<KernelWriter>(*std::move(writer));
  part.requests = std::make_unique<KernelRequests>(
      buffer.view(), *part.writer, events.more, processes, reader::print_warning);
  return part;
}

}  // namespace arctrace::cli
