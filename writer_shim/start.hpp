// The shim's own start in a process.
#pragma once

namespace arctrace::shim {

// Joins the session now, if the environment names one: for hooks that are called before
// our constructor has run.
void join_early();

}  // namespace arctrace::shim
