// The rows about libc's functions. Static assertions beside the table and its users check
// the order of names and the words of prototypes.
#include "src/base/libc_functions.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace arctrace::testing {
namespace {

TEST_CASE("libc functions: a row is found by its whole name") {
  const LibcFunction* row = find_libc_function("pthread_rwlock_tryrdlock");
  REQUIRE(row != nullptr);
  CHECK(row->kind == FunctionKind::kLock);
  CHECK(row->lock.kind == LockKind::kRwlock);
  CHECK(row->lock.action == LockAction::kAcquireShared);
  CHECK(row->lock.wait == LockWait::kTries);
  CHECK(find_libc_function("pthread_rwlock_tryrdloc") == nullptr);
  CHECK(find_libc_function("") == nullptr);
  CHECK(find_libc_function("operator new[]") != nullptr);
}

TEST_CASE("libc functions: a prototype's words") {
  PrototypeWords words("(pointer, _, string) -> long or -1");
  CHECK(words.next_argument() == "pointer");
  CHECK(words.next_argument() == "_");
  CHECK(words.next_argument() == "string");
  CHECK(words.next_argument().empty());
  CHECK(words.result() == "long");
  CHECK(words.failure() == CallFailure::kMinus1);
  PrototypeWords none("()");
  CHECK(none.next_argument().empty());
  CHECK(none.result().empty());
  CHECK(PrototypeWords("(size) -> pointer or null").failure() == CallFailure::kNull);
  CHECK(PrototypeWords("").result().empty());
}

TEST_CASE("libc functions: rows about locks say which, and what is returned") {
  for (const LibcFunction& row : kLibcFunctions) {
    CAPTURE(std::string(row.name));
    if (row.lock.action == LockAction::kNone) continue;
    // The reader takes only functions with a kind for libc's.
    CHECK(row.kind != FunctionKind::kOther);
    CHECK(row.prototype[0] != '\0');
    const bool is_condition = row.kind == FunctionKind::kCondition;
    CHECK((row.lock.kind == LockKind::kCondition) == is_condition);
    CHECK((row.lock.kind == LockKind::kSemaphore) ==
          (row.kind == FunctionKind::kSemaphore));
  }
}

TEST_CASE("libc functions: a variant for large files is of its function's kind") {
  for (const LibcFunction& row : kLibcFunctions) {
    std::string_view plain = row.name;
    if (!plain.ends_with("64")) continue;
    plain.remove_suffix(2);
    CAPTURE(std::string(row.name));
    const LibcFunction* its = find_libc_function(plain);
    if (its != nullptr) CHECK(its->kind == row.kind);
  }
}

}  // namespace
}  // namespace arctrace::testing
