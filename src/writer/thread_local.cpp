#include "src/writer/thread_local.hpp"

namespace arctrace {

thread_local constinit ThreadLocal thread_local_state{};

}  // namespace arctrace
