#include "src/process/work_claims.hpp"

#include <cstddef>

#include "src/base/shared_atomics.hpp"

namespace arctrace::writer {
namespace {

// For each kind of work: the session identities of the process, above, and of the thread;
// 0: no thread does it.
constexpr size_t kWorks = 2;
constinit uint64_t claims[kWorks]{};

constexpr unsigned kProcessShift = 32;

uint64_t claim_of(const ProcessState& process, uint32_t writer) {
  return uint64_t{process.id} << kProcessShift | writer;
}

}  // namespace

bool claim_work(Work work, const ProcessState& process, uint32_t writer) {
  uint64_t& claim = claims[static_cast<size_t>(work)];
  uint64_t last = IpcAtomics::load_relaxed(claim);
  return last >> kProcessShift != process.id &&
         IpcAtomics::compare_exchange_acq_rel(claim, last, claim_of(process, writer));
}

void end_work(Work work) {
  IpcAtomics::store_release(claims[static_cast<size_t>(work)], uint64_t{0});
}

void abandon_work(const ProcessState& process, uint32_t writer) {
  for (uint64_t& claim : claims) {
    if (IpcAtomics::load_relaxed(claim) == claim_of(process, writer)) {
      IpcAtomics::store_release(claim, uint64_t{0});
    }
  }
}

}  // namespace arctrace::writer
