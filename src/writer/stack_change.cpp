#include "src/writer/stack_change.hpp"

namespace arctrace {

void note_lost_change(Nesting nesting, ThreadState& state) {
  state.loss.stack_differs = true;
  // A nested call must not touch the block: the outermost call does it at its end.
  if (nesting.outermost()) require_stack(state);
}

}  // namespace arctrace
