#include "tests/support/child.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>

namespace arctrace::testing {
namespace {

constexpr int kAssertionFailed = 101;

bool assertion_failed;

// doctest tells listeners of failed assertions only.
struct FailureListener : doctest::IReporter {
  explicit FailureListener(const doctest::ContextOptions& /*options*/) {}
  void report_query(const doctest::QueryData& /*query*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& /*stats*/) override {}
  void test_case_start(const doctest::TestCaseData& /*test*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*test*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*subcase*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& assertion) override {
    if (assertion.m_failed) assertion_failed = true;
  }
  void log_message(const doctest::MessageData& /*message*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*test*/) override {}
};
REGISTER_LISTENER("children", 1, FailureListener);

}  // namespace

int start_child(const std::function<void()>& body) {
  std::cout.flush();
  std::fflush(nullptr);
  const int pid = fork();
  REQUIRE(pid >= 0);
  if (pid > 0) return pid;
  assertion_failed = false;
  try {
    body();
  } catch (const std::exception& error) {
    std::printf("exception in a child: %s\n", error.what());
    assertion_failed = true;
  } catch (...) {  // a REQUIRE
    assertion_failed = true;
  }
  std::cout.flush();
  std::fflush(nullptr);
  _exit(assertion_failed ? kAssertionFailed : 0);
}

bool has_ended(int pid) {
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0);
  return info.si_pid != 0;
}

std::string wait_for_child(int pid) {
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) == kAssertionFailed) return "an assertion failed";
  if (WEXITSTATUS(status) != 0) {
    return "exit code " + std::to_string(WEXITSTATUS(status));
  }
  return "";
}

std::string run_in_child(const std::function<void()>& body) {
  return wait_for_child(start_child(body));
}

void check_child(const char* file, int line, const std::function<void()>& body) {
  const std::string ended = run_in_child(body);
  if (!ended.empty()) ADD_FAIL_CHECK_AT(file, line, "the child ended with " << ended);
}

}  // namespace arctrace::testing
