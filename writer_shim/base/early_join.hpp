// Joins the session before the shim's start.
#pragma once

namespace arctrace::shim {

// Joins the session that the environment names, if libc has started: for hooks that are
// called before the shim's own start, by constructors of other modules, and by resolvers
// of indirect functions. Only the first call tries; later ones cost a load.
void join_early();

}  // namespace arctrace::shim
