// The entry point of call_tree.cpp, the call tree that the benchmarks record.
#pragma once

// Makes 2^levels - 1 calls of 64 functions (and is one itself), each by a path of its
// own: as many distinct stack nodes.
void call_tree(unsigned levels);
