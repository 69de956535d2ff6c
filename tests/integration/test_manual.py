"""The manual and the completions: they have the options that the command has, pages are well formed, examples run, and what
a shell offers is right in bash, zsh and fish."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

import cases
from command import ARCTRACE, arctrace, read, run
from tracing import TracedTest

BUILD = pathlib.Path(ARCTRACE).resolve().parent.parent
PAGES = BUILD / "share/man"
COMPLETIONS = BUILD / "share/completions"


def output(*command, **options):
    return run(*command, stderr=subprocess.STDOUT, **options).stdout


def commands():
    """Names of the subcommands."""
    listed = output(ARCTRACE, "--help").partition("Subcommands:\n")[2]
    return re.findall(r"^  (\w+) ", listed, re.M)


def options_of(command):
    """The long options in the help of a command; "" is arctrace itself."""
    found = re.findall(r"^  (-\S+)", output(ARCTRACE, *command.split(), "--help"), re.M)
    return {name for names in found for name in names.split(",")}


@unittest.skipUnless((PAGES / "man1/arctrace.1").exists(), "built without scdoc")
class Manual(TracedTest):
    def test_a_page_for_each_command(self):
        pages = {page.name for page in (PAGES / "man1").iterdir()}
        self.assertEqual(pages, {"arctrace.1"} | {f"arctrace-{command}.1" for command in commands()})

    def test_each_option_is_there(self):
        for command in ["", *commands()]:
            page = PAGES / "man1" / (f"arctrace-{command}.1" if command else "arctrace.1")
            text = page.read_text(encoding="utf-8").replace("\\-", "-")
            bold = set(re.findall(r"\\fB(-[^\\]*)\\fR", text))
            self.assertEqual(options_of(command) - bold, set(), page.name)

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_each_function_is_there(self):
        headers = pathlib.Path(__file__).resolve().parents[2] / "include/arctrace"
        for library, header in (("libarctrace", "arctrace.h"), ("libarctrace-reader", "reader.h")):
            page = (PAGES / f"man3/{library}.3").read_text().replace("\\", "")
            text = re.sub(r"/\*.*?\*/", "", (headers / header).read_text(), flags=re.S)
            declared = re.findall(r"(?m)^ARCTRACE(?:_READER)?_API\s[^;(]*?(\w+)\(", text)
            self.assertGreater(len(declared), 15)
            for name in declared + re.findall(r"(?m)^(?:struct|enum) \w+ (?={)", text):
                self.assertIn(name, page)

    def test_well_formed(self):
        for page in PAGES.glob("man*/*"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=True)
            self.assertEqual(done.stdout, "", page.name)

    def test_examples_run(self):
        """Runs the examples of each page, in their order, in a directory of its own."""
        environment = {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "XDG_CONFIG_HOME": str(self.directory)}
        seen = 0
        for source in sorted((pathlib.Path(__file__).resolve().parents[2] / "man").glob("*.scd")):
            lines = re.findall(r"^\$ (.*)$", source.read_text(encoding="utf-8"), re.M)
            if not lines or source.name == "arctrace-help.scd":
                continue
            directory = self.directory / source.stem
            directory.mkdir()
            # The name is one that no session of the user has.
            script = "set -e\n" + "\n".join(lines).replace("manual-example", f"manual-{os.getpid()}")
            done = run("bash", "-c", script, cwd=directory, env=environment)
            self.assertEqual(done.returncode, 0, f"{source.name}: {done.stderr}")
            self.assertNotIn("lost (", done.stderr)
            self.assertNotIn("warning", done.stderr, source.name)
            seen += len(lines)
        self.assertGreater(seen, 40)

    def test_help_opens_the_page(self):
        man = self.directory / "man"
        man.write_text('#!/bin/sh\necho "man $*"\n', encoding="ascii")
        man.chmod(0o755)
        environment = {**os.environ, "PATH": f"{self.directory}:{os.environ['PATH']}"}
        for words, page in (((), "arctrace.1"), (("record",), "arctrace-record.1")):
            shown = output(ARCTRACE, "help", *words, env=environment)
            self.assertEqual(shown, f"man {PAGES / 'man1' / page}\n")
        # Without man, the help is shown.
        environment["PATH"] = str(self.directory / "none")
        self.assertEqual(output(ARCTRACE, "help", "record", env=environment),
                         output(ARCTRACE, "record", "--help"))
        done = arctrace("help", "recrod")
        self.assertEqual((done.returncode, done.stderr),
                         (2, 'arctrace: help: no command "recrod"; did you mean "record"?\n'))


class Completion(TracedTest):
    """What each shell offers for a command line that ends where the user presses TAB."""

    def setUp(self):
        super().setUp()
        self.session = f"completed-{os.getpid()}-here"
        read("create", self.session, "-b", "1M")
        self.addCleanup(read, "destroy", self.session)
        self.record("ls", options=("-b", "1M"))
        (self.directory / "other.data").touch()
        (self.directory / "two words.data").touch()
        self.environment = {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "TERM": "dumb"}

    def check_shell(self, offers, has_dynamic=True):
        """`offers`: a function from the words of a command line, the last of which is not finished, to a set."""
        self.assertEqual(offers("arctrace", "rec"), {"record", "recover"})
        self.assertIn("destroy", offers("arctrace", ""))
        self.assertNotIn("complete", offers("arctrace", ""))
        self.assertEqual(offers("arctrace", "record", "--buffer"), {"--buffer-size", "--buffer-dir"})
        self.assertEqual(offers("arctrace", "record", "--mode", ""), {"drop", "overwrite", "stop"})
        self.assertEqual(offers("arctrace", "report", "--format", "j"), {"json"})
        self.assertIn("flat", offers("arctrace", "report", "--view", ""))
        self.assertEqual(offers("arctrace", "export", "--to", "p"), {"perfetto", "pprof"})
        self.assertEqual(offers("arctrace", "help", "sn"), {"snapshot"})
        # The value of an option before the command is not the command.
        self.assertEqual(offers("arctrace", "--config", "other.data", "rec"), {"record", "recover"})
        self.assertEqual(offers("arctrace", "--config", "other.data", "record", "--mode", ""), {"drop", "overwrite", "stop"})
        self.assertEqual(offers("arctrace", "--config=other.data", "rec"), {"record", "recover"})
        if not has_dynamic:
            return
        self.assertIn(self.session, offers("arctrace", "attach", ""))
        self.assertEqual(offers("arctrace", "record", "--session", self.session[:-3]), {self.session})
        self.assertIn("other.data", offers("arctrace", "report", "oth"))
        self.assertIn("two words.data", {word.replace("\\", "") for word in offers("arctrace", "report", "two")})
        self.assertIn("setlocale", offers("arctrace", "report", "-F", "setl") | offers("arctrace", "graph", "setl"))

    def in_bash(self, *words):
        # "=" and ":" divide words, as in readline.
        split = [part for word in words for part in re.split(r"(=|:+)", word) if part or not word]
        script = ('source "$1"; COMP_LINE=$2 COMP_POINT=${#2}; shift 2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _arctrace; '
                  'for word in "${COMPREPLY[@]}"; do echo "$word"; done')
        return set(output("bash", "--norc", "-c", script, "bash", COMPLETIONS / "arctrace", " ".join(words), *split,
                          cwd=self.directory, env=self.environment).splitlines())

    def test_bash(self):
        self.check_shell(self.in_bash)
        self.assertEqual(self.in_bash("arctrace", "record", "--mode=o"), {"overwrite"})
        self.assertEqual(self.in_bash("arctrace", "record", "--mode="), {"drop", "overwrite", "stop"})
        self.assertEqual(self.in_bash("arctrace", "record", "--pin", "auto", "--sco"), {"--scope"})
        # The recorded command is completed as a command, and has options of its own.
        self.assertIn("true", self.in_bash("arctrace", "record", "--", "tru"))
        self.assertIn("true", self.in_bash("arctrace", "record", "-b", "1M", "tru"))
        self.assertNotIn("--mode", self.in_bash("arctrace", "record", "ls", "--mo"))
        self.assertEqual(self.in_bash("arctrace", "ctl", "--off", "func"), {"functions"})

    def test_bash_words_in_one_name(self):
        """Spaces are quoted; for a word with ":" only the rest is offered."""
        program = self.directory / "functions"
        program.write_text("#!/bin/sh\nprintf '%s\\n' 'operator new' std::sort std::vector::size\n", encoding="ascii")
        program.chmod(0o755)
        self.assertEqual(self.in_bash(str(program), "report", "-F", "oper"), {"operator\\ new"})
        self.assertEqual(self.in_bash(str(program), "report", "-F", "operator\\ n"), {"operator\\ new"})
        self.assertEqual(self.in_bash(str(program), "report", "-F", "'operator n"), {"operator new"})
        self.assertEqual(self.in_bash(str(program), "report", "-F", "std::s"), {"sort"})
        self.assertEqual(self.in_bash(str(program), "report", "-F", "std::vector::"), {"size"})
        self.assertEqual(self.in_bash("arctrace", "record", "-F", "std::sort", "--mode", "o"), {"overwrite"})

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        def offers(*words):
            line = " ".join(words[:-1]) + " " + words[-1]
            shown = output("fish", "--no-config", "-c", f"source {COMPLETIONS}/arctrace.fish; complete -C '{line}'",
                           cwd=self.directory, env={**self.environment, "HOME": str(self.directory)})
            return {row.split("\t")[0] for row in shown.splitlines()}

        self.check_shell(offers)

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh(self):
        """Runs in a terminal of zsh's own, because its completion runs only while a line is edited."""
        driver = self.directory / "driver.zsh"
        driver.write_text("""
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PROMPT=; unsetopt zle_bracketed_paste; fpath=($1 \\$fpath); autoload -Uz compinit; compinit -D -u"
zpty -w z "zstyle ':completion:*' list-colors ''; zstyle ':completion:*' verbose no; LISTMAX=10000; unsetopt always_last_prompt"
zpty -w z "TRAPEXIT() {}; list-all() { _main_complete; compstate[insert]=; compstate[list]='list force' }"
zpty -w z "zle -C list-all list-choices list-all; show-all() { zle list-all; zle -R; print; print LIS''TED }"
zpty -w z "zle -N show-all; bindkey '^T' show-all; echo BEG''IN"
zpty -r z line '*BEGIN*'
zpty -n -w z "$2"$'\\C-T'
zpty -r z shown '*LISTED*'
print -r -- "$shown"
zpty -d z
""", encoding="ascii")

        def offers(*words):
            shown = output("zsh", "-f", driver, COMPLETIONS, " ".join(words[:-1]) + " " + words[-1], cwd=self.directory,
                           env={**self.environment, "HOME": str(self.directory)})
            return {word for word in re.split(r"\s+|\x1b\[[0-9;?]*[A-Za-z]", shown) if word}

        shown = offers("arctrace", "rec")
        self.assertLessEqual({"record", "recover"}, shown)
        self.assertNotIn("report", shown)
        self.assertLessEqual({"drop", "overwrite", "stop"}, offers("arctrace", "record", "--mode", ""))
        self.assertIn(self.session, offers("arctrace", "attach", ""))
        self.assertLessEqual({"record", "recover"}, offers("arctrace", "--config", "other.data", "rec"))


if __name__ == "__main__":
    cases.main()
