"""Functions of languages other than C++: each is shown by the name that its language's tools have for it, and the
patterns of `record` and `report` match that name. A language whose compiler is missing is skipped."""

import json
import os
import shutil
import subprocess
import unittest

import cases
from command import read_report
from tracing import TracedTest

RUST = """
mod inner {
    use std::hint::black_box;
    #[inline(never)]
    pub fn descend(n: u64) -> u64 {
        if n == 0 { 1 } else { black_box(descend(black_box(n - 1)) + n) }
    }
    pub trait Area { fn area(&self) -> u64; }
    pub struct Square(pub u64);
    impl Area for Square {
        #[inline(never)]
        fn area(&self) -> u64 {
            let mut sum = 0;
            for i in 0..black_box(self.0) { sum += black_box(i); }
            sum
        }
    }
}
use inner::Area;
fn main() {
    let mut sum = 0;
    for _ in 0..5 { sum += inner::descend(3); }
    for _ in 0..7 { sum += std::hint::black_box(inner::Square(4)).area(); }
    println!("{}", sum);
}
"""
FORTRAN = """
module shapes
contains
  recursive integer function area(n) result(r)
    integer, intent(in) :: n
    r = 1
    if (n > 0) r = area(n - 1) + n
  end function
  integer function side(n) result(r)
    integer, intent(in) :: n
    r = area(n)
  end function
end module
program p
  use shapes
  integer :: i, s
  s = 0
  do i = 1, 5
    s = s + side(3)
  end do
  print *, s
end program
"""
ADA = {"shop.ads": """
package Shop is
   function Serve (N : Integer) return Integer;
   function Serve (N : Float) return Float;
   function "+" (A : Float; B : Integer) return Float;
end Shop;
""", "shop.adb": """
package body Shop is
   function Serve (N : Integer) return Integer is
   begin
      if N = 0 then return 1; end if;
      return Serve (N - 1) + N;
   end Serve;
   function Serve (N : Float) return Float is
   begin
      return N * 2.0 + Serve (2);
   end Serve;
   function "+" (A : Float; B : Integer) return Float is
   begin
      return A + Float (B);
   end "+";
end Shop;
""", "sell.adb": """
with Ada.Text_IO; with Shop;
procedure Sell is
   S : Integer := 0;
begin
   for I in 1 .. 5 loop S := S + Shop.Serve (3); end loop;
   S := S + Integer (Shop.Serve (1.0));
   Ada.Text_IO.Put_Line (Integer'Image (S));
end Sell;
"""}
D = """
module app;
import core.stdc.stdio;
class Desk {
    int serve(int n) { return n == 0 ? 1 : serve(n - 1) + n; }
}
T largest(T)(T a, T b) { return a < b ? b : a; }
extern(C) int main() {
    static Desk desk;
    int sum = 0;
    auto place = new char[16];
    scope one = new Desk;
    for (int i = 0; i < 5; ++i) sum += one.serve(3);
    for (int i = 0; i < 7; ++i) sum = largest!int(sum, i);
    printf("%d\\n", sum);
    return 0;
}
"""


def compiler(*names):
    """The first of these programs that exists; else the case is skipped by the name."""
    for name in names:
        if found := shutil.which(name):
            return found
    raise unittest.SkipTest(f"there is no {names[0]}")


class Languages(TracedTest):
    def write(self, name, text):
        (self.directory / name).write_text(text, encoding="utf-8")

    def calls_of(self, program, *options):
        """How often each function was called; nothing is warned of."""
        traced = self.record(f"./{program}", options=("--no-libcall", *options))
        self.assertEqual(traced.status, 0, traced.stderr)
        self.assertIn(" 0 lost, ", traced.own_lines[-1])
        self.assertEqual([line for line in traced.own_lines if "matches" in line], [], traced.stderr)
        return traced.calls()

    def assert_patterns(self, program, name, calls, *patterns):
        """Each pattern has just this function recorded by -F and by -P, and left out by -N and by `report -N`; or
        shown by `report -F`."""
        for pattern in patterns:
            with self.subTest(pattern=pattern):
                everything = self.calls_of(program, "-P", ".", "-Z", "1", "-F", pattern, "-D", "1")
                self.assertEqual(set(everything), {name})
                self.assertEqual(self.calls_of(program, "-P", pattern, "-Z", "1"), {name: calls})
                without = self.calls_of(program, "-P", ".", "-Z", "1", "-N", pattern)
                self.assertNotIn(name, without)
                if pattern.startswith("re:"):  # reports take globs
                    continue
                self.calls_of(program, "-P", ".", "-Z", "1")
                trace = self.directory / "arctrace.data"
                for option, shown in (("-F", True), ("-N", False)):
                    rows = read_report(trace, "flat", option, pattern)["functions"]
                    self.assertEqual(name in {row["name"] for row in rows}, shown, option)

    def rust(self, mangling):
        self.write("ab.rs", RUST)
        # Either encoding is an unstable option in some versions.
        subprocess.run([compiler("rustc"), "-O", "-Zunstable-options", f"-Csymbol-mangling-version={mangling}", "-o",
                        "ab", "ab.rs"], cwd=self.directory, env={**os.environ, "RUSTC_BOOTSTRAP": "1"}, check=True,
                       stderr=subprocess.DEVNULL)
        calls = self.calls_of("ab", "-P", ".", "-Z", "1")
        self.assertEqual(calls["ab::inner::descend"], 5 * 4)
        self.assertEqual(calls["<ab::inner::Square as ab::inner::Area>::area"], 7)
        self.assertEqual([name for name in calls if "17h" in name or name.startswith(("_R", "_Z"))], [])
        self.assert_patterns("ab", "ab::inner::descend", 20, "ab::inner::descend", "ab::i*::d*", "re:::descend$")
        return calls

    @cases.in_gate
    def test_rust(self):
        self.rust("v0")

    def test_rust_with_hashes(self):
        self.rust("legacy")

    @cases.in_gate
    def test_fortran(self):
        self.write("shapes.f90", FORTRAN)
        subprocess.run([compiler("gfortran"), "-O0", "-o", "shapes", "shapes.f90"], cwd=self.directory, check=True)
        calls = self.calls_of("shapes", "-P", ".", "-Z", "1")
        self.assertEqual((calls["shapes::area"], calls["shapes::side"]), (20, 5))
        self.assert_patterns("shapes", "shapes::area", 20, "shapes::area", "*::a*")

    @cases.in_gate
    def test_ada(self):
        gnatmake = compiler("gnatmake")
        for name, text in ADA.items():
            self.write(name, text)
        subprocess.run([gnatmake, "-q", "-O0", "sell.adb"], cwd=self.directory, check=True)
        calls = self.calls_of("sell", "-P", ".", "-Z", "1")
        # Overloaded functions have one name, as in gdb.
        self.assertEqual(calls["shop.serve"], 5 * 4 + 1 + 3)
        self.assertEqual(calls['shop."+"'], 1)
        self.assertEqual(calls["sell"], 1)
        self.assert_patterns("sell", "shop.serve", 24, "shop.serve", "shop.s*")
        # The names in the file are Ada's, also without the program.
        trace = self.directory / "arctrace.data"
        (self.directory / "sell").unlink()
        self.assertIn("shop.serve", json.dumps(read_report(trace, "flat")))

    def test_names_like_adas_in_c(self):
        self.write("plain.c", "int c__help(int n) { return n + 1; }\nint main(int n) { return c__help(n) - 2; }\n")
        subprocess.run(["gcc", "-O0", "-o", "plain", "plain.c"], cwd=self.directory, check=True)
        self.assertEqual(self.calls_of("plain", "-P", "c__help", "-Z", "1"), {"c__help": 1})

    @cases.in_gate
    def test_d(self):
        self.write("app.d", D)
        subprocess.run([compiler("gdc", "ldc2"), "-O0", "-o", "app", "app.d"], cwd=self.directory, check=True)
        calls = self.calls_of("app", "-P", ".", "-Z", "1")
        self.assertEqual(calls["app.Desk.serve(int)"], 20)
        self.assertEqual(calls["app.largest!(int).largest(int, int)"], 7)
        self.assert_patterns("app", "app.Desk.serve(int)", 20, "app.Desk.serve", "app.D*")
        # With parameters, functions are chosen by the command, but not filtered in the program.
        self.assertEqual(self.calls_of("app", "-P", "app.Desk.serve(int)", "-Z", "1"), {"app.Desk.serve(int)": 20})
        traced = self.record("./app", options=("-P", ".", "-Z", "1", "-F", "app.largest!(int).largest"))
        self.assertIn("names of D match only without template arguments and parameters; try -F _D3app",
                      "".join(traced.own_lines))


if __name__ == "__main__":
    cases.main()
