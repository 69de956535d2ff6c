// Declares the function of measured_call.cpp under the name of each of its builds.
#pragma once

extern "C" {
long call_plain(long n);
long call_gcc(long n);
long call_clang(long n);
}
