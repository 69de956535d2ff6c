// Runs test code in a forked child: a process joins one session, once, so each test that
// joins needs a process of its own.
#pragma once

#include <functional>
#include <string>

namespace arctrace::testing {

// Forks, runs `body` in the child and returns how the child ended: "" if it came to its
// end and no doctest assertion in it failed (a failed one prints as usual), else what
// happened ("an assertion failed", "signal 9", "exit code 3"). REQUIRES: the calling
// process has one thread.
std::string run_in_child(const std::function<void()>& body);

// Starts the child without waiting; returns its pid.
int start_child(const std::function<void()>& body);

// Whether a child of start_child() has ended, so that a wait for it returns at once.
bool has_ended(int pid);

// Waits for a child of start_child(), and returns how it ended.
std::string wait_for_child(int pid);

// The implementation of CHECK_CHILD.
void check_child(const char* file, int line, const std::function<void()>& body);

}  // namespace arctrace::testing

// Runs the body in a child, and fails if the child does not succeed.
#define CHECK_CHILD(...) ::arctrace::testing::check_child(__FILE__, __LINE__, __VA_ARGS__)
