// Whether threads may have signal stacks.
#include "writer_shim/base/stack_space.hpp"

namespace arctrace::shim {

constinit uint32_t have_signal_stacks = 0;

}  // namespace arctrace::shim
