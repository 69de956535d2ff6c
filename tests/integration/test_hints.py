"""Commands that reports and recorders advise: each is pasted into a shell, and must work."""

import os
import pathlib
import re
import subprocess

import cases
from command import ARCTRACE, arctrace, run
from tracing import TracedTest

# A command at the end of a line, and with a backslash in lines below it.
ADVISED = re.compile(r"(?m)(?:^more: +|^ {5,}|: |: run |; .* run )((?:[A-Z_]+=\S+ )?arctrace [a-z]+(?: .*\\\n.*| .*)*)$")

WORKS = """
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) int add(int a, int b) {
  volatile int sum = a;
  for (int i = 0; i < b; ++i) sum = sum + i;
  return sum;
}

int main(int argc, char** argv) {
  volatile int sum = 0;
  for (int i = 0; i < 60000; ++i) sum = sum + add(i, argc * 1000) + labs(i);
  return 0;
}
"""

CONVOY = """
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void* work(void* unused) {
  for (int i = 0; i < 20; ++i) {
    pthread_mutex_lock(&log_lock);
    usleep(1000);
    pthread_mutex_unlock(&log_lock);
  }
  return unused;
}

int main(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  return 0;
}
"""

NAMES = """
#include <cstdlib>
#include <vector>

struct Table {
  std::vector<int> rows = std::vector<int>(64);
  __attribute__((noinline)) int operator[](int i) {
    volatile int sum = 0;
    for (int k = 0; k < 2000; ++k) sum = sum + k;
    return rows[i % 64] + sum;
  }
};
int main() {
  Table table;
  int sum = 0;
  for (int i = 0; i < 500; ++i) sum += table[i];
  return sum == 1;
}
"""


def advised(text):
    """The commands in a report, or in what a recorder printed."""
    return [found.replace("\\\n", "") for found in ADVISED.findall(text)]


class Hints(TracedTest):
    def build(self, source, name, *options, language="c"):
        program = self.directory / name
        subprocess.run(["gcc" if language == "c" else "g++", "-O1", "-fno-builtin", *options, "-x", language, "-", "-o",
                        program], input=source, text=True, check=True)
        return program

    def paste(self, command):
        """Runs it in a shell, in the directory; it must find what it is about."""
        path = f"{pathlib.Path(ARCTRACE).parent}:{os.environ['PATH']}"
        done = run("sh", "-c", command, cwd=self.directory, env=dict(os.environ, PATH=path))
        self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
        self.assertNotRegex(done.stderr, "warning|no function|nothing", command)
        return done

    def commands(self, trace, *options):
        """The commands of the summary; all have been pasted."""
        done = arctrace("report", *options, *([trace] if trace else []), cwd=self.directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        commands = advised(done.stdout)
        self.assertGreaterEqual(len(commands), 3, done.stdout)
        for command in commands:
            self.paste(command)
        return commands

    @cases.in_gate
    def test_files(self):
        """The default file is not named, each other one is."""
        program = self.build(WORKS, "works", "-finstrument-functions")
        for name in ("arctrace.data", "other.data", "two words.data", "it's.data", "-dash", "$HOME\x1b[31m.data"):
            with self.subTest(name=name):
                path = self.directory / name
                done = self.record(program, trace=name)
                self.assertEqual(done.status, 0, done.stderr)
                is_default = name == "arctrace.data"
                commands = self.commands(None if is_default else f"./{name}")
                self.assertEqual(commands[0] == "arctrace report --view=tree", is_default)
                path.unlink()

    @cases.in_gate
    def test_names(self):
        """A function whose name has characters of globs and of shells is found by the pattern that is advised."""
        program = self.build(NAMES, "names", "-finstrument-functions", language="c++")
        self.assertEqual(self.record(program).status, 0)
        graph = [command for command in self.commands(None) if " graph " in command]
        self.assertEqual(graph, ["arctrace graph 'Table::operator??'"])

    @cases.in_gate
    def test_own_functions(self):
        """Those of the program that took the time, whatever program stands before it; after the command they are
        recorded."""
        self.build(WORKS, "works")
        (self.directory / "quick").symlink_to("/bin/true")
        for front in (["env", "A=b c"], ["nice", "-n1"], ["sh", "-c", './quick; ./works "two words"; exit 0'],
                      ["bash", "-c", "x=$(./works $*); exit 0", "it's"]):
            with self.subTest(front=front[0]):
                command = front if "-c" in front else [*front, "./works"]
                done = arctrace("record", "-o", "other.data", *command, cwd=self.directory)
                self.assertEqual(done.returncode, 0, done.stderr)
                text = arctrace("report", "other.data", cwd=self.directory).stdout
                self.assertIn("\nfunctions of works itself are not recorded: record it with -P .", text)
                first = advised(text)[0]
                self.assertTrue(first.startswith("arctrace record -P . -o other.data "), first)
                self.paste(first)
                text = arctrace("report", "other.data", cwd=self.directory).stdout
                self.assertNotIn("not recorded", text)
                self.assertIn("  add", text)

    def test_interpreter(self):
        """The library with the functions of a program that only starts them is named, of a command and of a process
        that runs already; the kernel's records are counted apart, and without a filter none is blamed."""
        library = self.directory / "libengine1.so"
        self.build("#include <unistd.h>\nvoid engine_loop(int turns) { while (turns-- > 0) usleep(1000); }", library,
                   "-shared", "-fPIC", "-Wl,-soname,libengine1.so")
        program = self.build("void engine_loop(int);\nint main(int argc, char** argv) { engine_loop(argc > 1 ? 1 << 30 : 9); }",
                             "engine1", "-Wl,--no-as-needed", f"-Wl,-rpath,{self.directory}", library)
        advice = "-P 'lib:libengine*:PATTERN'"
        done = arctrace("record", "-o", "command.data", program, cwd=self.directory)
        self.assertIn("; to record a program's own functions, which are mostly in libengine1.so, record it with "
                      f"{advice}\n", done.stderr)
        with subprocess.Popen([program, "long"]) as running:
            self.addCleanup(running.kill)
            for kernel in ([], ["--kernel"]):
                with self.subTest(kernel=kernel):
                    done = arctrace("record", "--duration=50ms", "-o", "joined.data", "-p", running.pid, *kernel,
                                    cwd=self.directory)
                    if kernel and "BPF" in done.stderr:
                        self.skipTest(done.stderr)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(f"libraries make, {advice} functions of libengine1.so\n", done.stderr)
                    count = r"0 records, 0 lost, [\d,]+ kernel records" if kernel else "0 records, 0 lost"
                    self.assertRegex(done.stderr, f"arctrace: {count}, 1 process")
                    text = arctrace("report", "joined.data", cwd=self.directory).stdout
                    self.assertNotIn("filter", text)
                    if kernel or "engine_loop" in text:  # functions that wait all the time are known
                        self.assertRegex(text, f"(?m)^{count}(, |$)")
                        continue
                    self.assertIn("Nothing to show: the trace has no records of any thread.\n", text)
                    self.assertIn(f"itself are not recorded: most are in libengine1.so: record it with {advice}\n", text)
            running.kill()

    @cases.in_gate
    def test_functions_without_names(self):
        """Much time in them, or little."""
        self.build(WORKS, "works", "-s")
        done = arctrace("record", "-P", ".", "-o", "other.data", "./works", cwd=self.directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        environment = {key: value for key, value in os.environ.items() if key != "DEBUGINFOD_URLS"}
        text = arctrace("report", "other.data", cwd=self.directory, env=environment).stdout
        self.assertRegex(text, r"\nfunctions of works without a name took \d+ % of the time: its symbols may be on a "
                               r"server\n *DEBUGINFOD_URLS=\S+ arctrace report --debuginfod other.data\n")
        self.assertNotIn("without a name", self.paste("arctrace report --debuginfod other.data").stdout)
        self.commands("other.data")

    @cases.in_gate
    def test_waits(self):
        """The view of locks where much time goes into taking them, and the kernel's records where waits take most."""
        program = self.build(CONVOY, "convoy", "-pthread")
        self.assertEqual(self.record(program).status, 0)
        text = arctrace("report", cwd=self.directory).stdout
        self.assertRegex(text, r"\n\d+ % of the time was in calls that take locks; which, and who had them:\n"
                               r" +arctrace report --view=locks\n")
        again = f"arctrace record --kernel -o {self.directory}/arctrace.data -- {program}"
        self.assertEqual(again in text, os.geteuid() == 0, text)
        self.assertIn("log_lock in convoy", self.paste("arctrace report --view=locks").stdout)
        if arctrace("record", "--kernel", "-o", self.directory / "probe", "--", "true").returncode == 0:
            self.commands(None)
            text = arctrace("report", cwd=self.directory).stdout
            self.assertNotIn("record --kernel", text)
        self.assertEqual(self.record(self.build(WORKS, "works")).status, 0)
        text = arctrace("report", cwd=self.directory).stdout
        self.assertNotIn("take locks", text)
        self.assertNotIn("arctrace record --kernel", text)

    def test_wrong_options(self):
        """The near name of an option, wherever it stands."""
        for arguments, near in ((["report", "--veiw=tree"], "--view"), (["report", "--veiw", "tree"], "--view"),
                                (["report", "--veiw=tree", "other.data"], "--view"),
                                (["report", "--veiw=two words"], "--view"),
                                (["dump", "--fromat", "json", "a.data", "b.data"], "--format"),
                                (["record", "--outptu", "x", "--", "true"], "--output"),
                                (["record", "--outptu=x", "true"], "--output"), (["--vresion"], "--version"),
                                (["info", "--verbsoe", "x"], "--verbose")):
            with self.subTest(arguments=arguments):
                done = arctrace(*arguments, cwd=self.directory)
                self.assertEqual(done.returncode, 2)
                self.assertIn(f'did you mean "{near}"', done.stderr)


if __name__ == "__main__":
    cases.main()
