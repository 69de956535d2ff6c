#!/usr/bin/env python3
"""The #include lines keep the architecture: docs/architecture.md, "Layers".

1. Direction: a file includes only files of its own directory, or of one that stands above it in
   LAYERS (which is ordered bottom to top).
2. Products: a file includes only files of its own product, and of the products that PRODUCTS
   permits it.
3. Circles: no two modules (a header with the source files of its name) of one product include
   each other, directly or through others.
"""

import pathlib
import re
import subprocess
import unittest

import cases

ROOT = pathlib.Path(__file__).resolve().parents[2]

# (directory, product), bottom to top. A directory that is not listed belongs to the nearest one
# above it that is.
LAYERS = [
    ("include/arctrace", "shared"),
    ("bpf", "kernel programs"),
    ("src/base", "shared"),
    ("src/buffer", "shared"),
    ("src/protocol", "shared"),
    ("src/hook_abi", "system"),
    ("src/os", "system"),
    ("src/shim_protocol", "system"),
    ("src/process", "writer"),
    ("src/stack", "writer"),
    ("src/writer", "writer"),
    ("src/calls", "writer"),
    ("src/api", "writer"),
    ("writer_shim/base", "shim"),
    ("writer_shim/elf", "shim"),
    ("writer_shim/arch", "shim"),
    ("writer_shim/unwind", "shim"),
    ("writer_shim/filter", "shim"),
    ("writer_shim/plt", "shim"),
    ("writer_shim/functions", "shim"),
    ("writer_shim/patch", "shim"),
    ("writer_shim/libc", "shim"),
    ("writer_shim", "shim"),
    ("src/cost_probe", "cost probe"),
    ("src/recorder/buffer", "recorder"),
    ("src/recorder/file", "recorder"),
    ("src/recorder/jit", "recorder"),
    ("src/recorder/drain", "recorder"),
    ("src/recorder/snapshot", "recorder"),
    ("src/recorder/kernel", "recorder"),
    ("src/recorder/attach", "recorder"),
    ("src/recorder/cache", "recorder"),
    ("src/recorder/patch_analysis", "recorder"),
    ("src/recorder/patch_image", "recorder"),
    ("reader/trace", "reader library"),
    ("reader/symbols", "reader library"),
    ("reader/replay", "reader library"),
    ("reader/analysis", "reader library"),
    ("reader/streams", "streams"),
    ("reader/render", "rendering"),
    ("src/recording/patterns", "recording"),
    ("src/recording/patching", "recording"),
    ("src/recording", "recording"),
    ("reader/c_api", "C interface"),
    ("reader/python", "Python module"),
    ("reader/report", "views"),
    ("reader/ui/model", "views"),
    ("reader/ui/tables", "views"),
    ("reader/ui/page", "views"),
    ("reader/live", "views"),
    ("reader/terminal", "terminal"),
    ("reader/export", "views"),
    ("reader/ui/server", "views"),
    ("reader/cli/options", "command"),
    ("reader/cli/record", "command"),
    ("reader/cli/commands", "command"),
    ("reader/cli/manual", "command"),
    ("reader/cli", "command"),
]

# The products whose files a product may include beside its own.
PRODUCTS = {
    "shared": set(),
    "kernel programs": {"shared"},
    "system": {"shared"},
    "writer": {"shared", "system"},
    "shim": {"shared", "system", "writer"},
    "cost probe": {"shared"},
    "recorder": {"shared", "system", "kernel programs"},
    "reader library": {"shared"},
    "streams": {"shared", "reader library"},
    "rendering": {"shared", "reader library", "streams"},
    "recording": {"shared", "system", "recorder", "reader library", "rendering"},
    "C interface": {"shared", "reader library", "streams"},
    "Python module": {"shared"},
    "views": {"shared", "reader library", "streams", "rendering"},
    "terminal": {"shared", "reader library", "streams", "rendering", "views"},
    "command": {"shared", "system", "recorder", "recording", "reader library", "streams", "rendering", "views",
                "terminal"},
}
# Headers of libraries, and the directories whose files may include them.
LIBRARIES = [
    (re.compile(r"CLI/"), ("reader/cli/",)),
    (re.compile(r"gelf\.h|libelf\.h|dwarf\.h|elfutils/"), ("reader/symbols/", "src/recorder/")),
]
# The shim may use only the part of the writer that is made for it.
WRITER_INTERFACE = {"src/api/shim_interface.h"}

RANK = {directory: rank for rank, (directory, _) in enumerate(LAYERS)}
PRODUCT = dict(LAYERS)
SUFFIX = re.compile(r"(\.bpf)?\.(h|hpp|cpp|c|S)$")


def layer(path):
    """The listed directory that a file belongs to, None if there is none."""
    for parent in pathlib.PurePosixPath(path).parents:
        if str(parent) in RANK:
            return str(parent)
    return None


def read_tree(root):
    """{file: the project's files that it includes}."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "ls-files", "--cached", "--others",
         "--exclude-standard", *sorted({directory.split("/")[0] for directory, _ in LAYERS})],
        cwd=root, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    files = {name for name in listed if SUFFIX.search(name) and (root / name).exists()}
    return {name: included_by(root, name, files) for name in files}


def included_by(root, name, files):
    """The files among `files` that the file `name` includes."""
    text = (root / name).read_text(encoding="utf-8")
    beside = str(pathlib.PurePosixPath(name).parent)
    found = set()
    for target in re.findall(r'^[ \t]*#[ \t]*include[ \t]+["<]([^">]+)[">]', text, re.MULTILINE):
        for candidate in (target, f"include/{target}", f"{beside}/{target}"):
            if candidate in files:
                found.add(candidate)
                break
    return found


def wrong_directions(tree):
    """["FILE includes TARGET: why"] for each include that points up, or out of its product."""
    wrong = []
    for name, targets in sorted(tree.items()):
        own = layer(name)
        if own is None:
            wrong.append(f"{name} stands in no layer that docs/architecture.md lists")
            continue
        for target in sorted(targets):
            other = layer(target)
            if other is None:
                continue
            if PRODUCT[other] != PRODUCT[own]:
                if PRODUCT[other] not in PRODUCTS[PRODUCT[own]]:
                    wrong.append(f"{name} includes {target}: the {PRODUCT[own]} may not use the "
                                 f"{PRODUCT[other]}")
                    continue
                if (PRODUCT[own], PRODUCT[other]) == ("shim", "writer") and (
                        target not in WRITER_INTERFACE):
                    wrong.append(f"{name} includes {target}: not part of the shim's interface")
            if RANK[other] > RANK[own]:
                wrong.append(f"{name} includes {target}: {other} stands above {own}")
    return wrong


def wrong_libraries(texts):
    """["FILE includes HEADER"] for each header of a library that is not for the file's directory. texts: {file: its text}."""
    wrong = []
    for name, text in sorted(texts.items()):
        for target in re.findall(r'^[ \t]*#[ \t]*include[ \t]+["<]([^">]+)[">]', text, re.MULTILINE):
            wrong += [f"{name} includes {target}: it is for {' and '.join(directories)}"
                      for header, directories in LIBRARIES
                      if header.match(target) and not name.startswith(directories)]
    return wrong


def module(name):
    """A file's module: its path without what follows the first dot."""
    return SUFFIX.sub("", name)


def circles(tree):
    """[modules that include one another], each sorted."""
    edges = {}
    for name, targets in tree.items():
        own = edges.setdefault(module(name), set())
        own |= {module(target) for target in targets if module(target) != module(name)}
    # Tarjan's algorithm, with a stack of its own.
    index, low, on_stack, stack, found = {}, {}, set(), [], []

    def visit(start):
        work = [(start, iter(sorted(edges.get(start, ()))))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(edges.get(target, ())))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        on_stack.discard(group[-1])
                    if len(group) > 1:
                        found.append(sorted(group))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


class Includes(unittest.TestCase):
    """The tree as it is."""

    tree = read_tree(ROOT)

    def test_point_down_and_stay_within_products(self):
        wrong = wrong_directions(self.tree)
        if wrong:
            self.fail("\n" + "\n".join(wrong))

    def test_headers_of_libraries_stay_in_their_layers(self):
        wrong = wrong_libraries({name: (ROOT / name).read_text(encoding="utf-8") for name in self.tree})
        if wrong:
            self.fail("\n" + "\n".join(wrong))

    def test_no_circles(self):
        found = ["  ".join(group) for group in circles(self.tree)]
        if found:
            self.fail("modules that include one another:\n" + "\n".join(found))

    def test_architecture_lists_the_layers(self):
        text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
        missing = [name for name, _ in LAYERS if f"`{name}/`" not in text]
        if missing:
            self.fail("docs/architecture.md does not name " + ", ".join(missing))

    def test_layers_are_there(self):
        used = {layer(name) for name in self.tree}
        self.assertEqual([name for name, _ in LAYERS if name not in used], [])


class PlantedFaults(unittest.TestCase):
    """Faults that the test must find."""

    def test_upward_include_is_found(self):
        tree = {"src/base/a.hpp": {"src/buffer/b.hpp"}, "src/buffer/b.hpp": set()}
        self.assertEqual(len(wrong_directions(tree)), 1)

    def test_foreign_product_is_found(self):
        tree = {"reader/trace/a.cpp": {"src/writer/b.hpp"}, "src/writer/b.hpp": set()}
        self.assertIn("may not use", wrong_directions(tree)[0])

    def test_writer_behind_the_interface_is_found(self):
        tree = {"writer_shim/plt/a.cpp": {"src/writer/b.hpp"}, "src/writer/b.hpp": set()}
        self.assertIn("interface", wrong_directions(tree)[0])

    def test_what_a_recording_never_includes_is_found(self):
        for target in ("reader/report/views.hpp", "reader/cli/options/options.hpp", "reader/terminal/screen.hpp",
                       "src/writer/b.hpp"):
            tree = {"src/recording/a.cpp": {target}, target: set()}
            self.assertIn("may not use", wrong_directions(tree)[0], target)

    def test_what_the_library_never_includes_is_found(self):
        for target in ("reader/render/text_style.hpp", "reader/report/views.hpp", "src/recorder/drain/drain.hpp"):
            tree = {"reader/c_api/a.cpp": {target}, target: set()}
            self.assertIn("may not use", wrong_directions(tree)[0], target)

    def test_headers_of_libraries_are_found(self):
        self.assertEqual(len(wrong_libraries({
            "src/recording/a.cpp": "#include <CLI/CLI.hpp>\n# include <gelf.h>\n#include <elf.h>\n",
            "reader/symbols/b.cpp": "#include <elfutils/libdw.h>\n", "reader/cli/c.hpp": "#include <CLI/App.hpp>\n"})), 2)

    def test_file_outside_all_layers_is_found(self):
        self.assertEqual(len(wrong_directions({"src/a.cpp": set()})), 1)

    def test_circle_is_found(self):
        tree = {"src/base/a.hpp": {"src/base/b.hpp"}, "src/base/b.cpp": {"src/base/c.hpp"},
                "src/base/b.hpp": set(), "src/base/c.hpp": {"src/base/a.hpp"}}
        self.assertEqual(circles(tree), [["src/base/a", "src/base/b", "src/base/c"]])


if __name__ == "__main__":
    cases.main()
