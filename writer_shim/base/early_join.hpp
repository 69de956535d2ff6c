// Joining the session before the shim's own start, for hooks that are called earlier: by
// constructors of other modules, and by resolvers of indirect functions.
#pragma once

namespace arctrace::shim {

// Joins the session that the environment names, if libc has started. Only the first call
// tries; later ones cost a load.
void join_early();

}  // namespace arctrace::shim
