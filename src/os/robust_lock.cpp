// Puts lock words on the robust list that libc has registered for the thread, or on a
// list of ours.
#include "src/os/robust_lock.hpp"

#include <arctrace/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstddef>

#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/os/kernel_use.hpp"
#include "src/os/process_facts.hpp"

namespace arctrace {
namespace {

// The list head that libc had registered for this thread when we last asked. A child of a
// clone system call that the program makes itself inherits this variable with its memory,
// but has no registered list.
thread_local constinit robust_list_head* known_head = nullptr;

// The distance in bytes from known_head to the list head that libc registers, which is
// the same in all threads, since both have fixed offsets from the thread pointer. 0: not
// known. The first thread that asks sets it, as a rule the main thread, because later
// threads may have registered lists of their own.
uint64_t head_distance;

// An address that differs between two threads by as much as their thread pointers.
char* thread_base() { return reinterpret_cast<char*>(&known_head); }

// A list of ours, for threads of a glibc that registers none; nothing else is on it. Its
// nodes are stored here as well, because those in shared memory may have been changed by
// another process.
struct OwnList {
  static constexpr uint32_t kNodesMax = 8;

  robust_list_head head;
  robust_list* nodes[kNodesMax];
  uint32_t count;
  uint32_t tid;  // of the thread that registered it, which a fork child is not
};
thread_local constinit OwnList own{};

bool is_known_layout(const robust_list_head* head, size_t size) {
  return head != nullptr && size == sizeof *head &&
         head->futex_offset == -ARCTRACE_ROBUST_NODE_OFFSET;
}

bool find_registered_head(robust_list_head*& head, size_t& size) {
  return raw_syscall(SYS_get_robust_list, 0, sys::pointer_argument(&head),
                     sys::pointer_argument(&size)) == 0;
}

// Puts the node at the beginning of the list.
void link(robust_list_head* head, robust_list* node) {
  uint64_t* const words = reinterpret_cast<uint64_t*>(node);
  robust_list* const first = head->list.next;
  words[0] = reinterpret_cast<uintptr_t>(first);
  words[-1] = reinterpret_cast<uintptr_t>(&head->list);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // libc's own nodes are doubly linked: the former first one must know its new
  // predecessor, as libc stores it there when it removes that node (bit 0 marks
  // priority-inheritance mutexes). The list's head has no such word.
  const uintptr_t first_node = reinterpret_cast<uintptr_t>(first) & ~uintptr_t{1};
  if (first_node != reinterpret_cast<uintptr_t>(&head->list)) {
    reinterpret_cast<uint64_t*>(first_node)[-1] = reinterpret_cast<uintptr_t>(node);
  }
  head->list.next = node;
}

void know_head(robust_list_head* head) {
  known_head = head;
  if (IpcAtomics::load_relaxed(head_distance) == 0) {
    const ptrdiff_t distance = reinterpret_cast<char*>(head) - thread_base();
    IpcAtomics::store_relaxed(head_distance, static_cast<uint64_t>(distance));
  }
}

// Registers an empty list, as libc does in a fork child: the locks that the parent's
// thread holds are not on the child's list.
bool register_again(robust_list_head* head) {
  if (head == &own.head) {
    own.count = 0;
    own.tid = sys::gettid();
  }
  head->list.next = &head->list;
  head->list_op_pending = nullptr;
  return raw_syscall(SYS_set_robust_list, sys::pointer_argument(head), sizeof *head) == 0;
}

// Moves our words to the list that libc has registered since ours.
void move_own_nodes(robust_list_head* head) {
  const uint32_t count = own.tid == sys::gettid() ? own.count : 0;
  for (uint32_t i = 0; i < count; ++i) link(head, own.nodes[i]);
  own.count = 0;
}

// The head that this thread's libc registered; null if there is none, or if its mutexes
// are laid out in another way than ours.
robust_list_head* registered_head() {
  if (!may_call_kernel()) return known_head;
  robust_list_head* head = nullptr;
  size_t size = 0;
  if (!find_registered_head(head, size)) return nullptr;
  if (head == nullptr && known_head != nullptr && register_again(known_head)) {
    return known_head;
  }
  if (head == nullptr && is_glibc() && IpcAtomics::load_relaxed(head_distance) == 0) {
    own.head.futex_offset = -ARCTRACE_ROBUST_NODE_OFFSET;
    if (!register_again(&own.head)) return nullptr;
    return known_head = &own.head;
  }
  if (head == &own.head) return head;
  if (!is_known_layout(head, size)) return nullptr;
  if (known_head == &own.head) move_own_nodes(head);
  know_head(head);
  return head;
}

}  // namespace

void follow_robust_list() {
  if (known_head == &own.head) registered_head();
}

bool has_robust_list() { return registered_head() != nullptr; }

void find_list_of_libc_thread() {
  const uint64_t distance = IpcAtomics::load_relaxed(head_distance);
  if (may_call_kernel() || !may_use_kernel(kThreadUse) || distance == 0) return;
  known_head = reinterpret_cast<robust_list_head*>(thread_base() +
                                                   static_cast<ptrdiff_t>(distance));
}

bool robust_lock(RobustWord word, uint32_t expected, uint32_t tid) {
  robust_list_head* head = registered_head();
  if (head == nullptr) return false;
  const bool is_own = head == &own.head;
  if (is_own && own.count == OwnList::kNodesMax) return false;
  auto* node = reinterpret_cast<robust_list*>(&word.next);
  robust_list* const pending_before = head->list_op_pending;

  // The kernel reads the list only when this thread is gone, so only the order of our own
  // stores counts: the fences below stop the compiler from changing it.
  head->list_op_pending = node;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const bool locked = IpcAtomics::compare_exchange_acq_rel(word.lock, expected, tid);
  if (locked) {
    link(head, node);
    if (is_own) own.nodes[own.count++] = node;
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  head->list_op_pending = pending_before;
  return locked;
}

}  // namespace arctrace
