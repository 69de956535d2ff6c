// measured_call.cpp, by the name of how it is built.
#pragma once

extern "C" {
long call_plain(long n);
long call_gcc(long n);
long call_clang(long n);
}
