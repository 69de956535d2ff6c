/* The stub of functions that report their exits (src/calls/reported_calls.hpp): their
 * sleds jump to it with the address of their LibraryCall in r11, and it jumps on to the
 * function (x86-64). */
#ifndef ARCTRACE_WRITER_SHIM_REPORTED_ENTRY_H
#define ARCTRACE_WRITER_SHIM_REPORTED_ENTRY_H

extern "C" __attribute__((visibility("hidden")))
const unsigned char arctrace_reported_entry[];

#endif /* ARCTRACE_WRITER_SHIM_REPORTED_ENTRY_H */
