"""Gates for the ELF files of the libraries that are loaded into traced programs.

Each gate takes the path of a library and returns its findings, one line each; none: it passes.
"""

import re
import subprocess


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def dynamic(library):
    """The dynamic section as a list of (tag, value)."""
    rows = re.findall(r"^ 0x\w+ \((\w+)\)\s+(.*)$", run("readelf", "-dW", library), re.M)
    return [(tag, value.strip()) for tag, value in rows]


def machine(library):
    """The machine of an ELF file: "X86-64", "AArch64"."""
    return re.search(r"Machine: .*?(\S+)$", run("readelf", "-hW", library), re.M).group(1)


def exports(library, wanted):
    """Exactly the names in `wanted` are exported."""
    found = set()
    for line in run("readelf", "-W", "--dyn-syms", library).splitlines():
        fields = line.split()
        if (len(fields) >= 8 and fields[0].rstrip(":").isdigit() and fields[4] != "LOCAL"
                and fields[6] not in ("UND", "ABS")):
            found.add(fields[7].split("@")[0])
    return [f"exported, but not in the list: {name}" for name in sorted(found - wanted)] + [
        f"in the list, but not exported: {name}" for name in sorted(wanted - found)
    ]


def imports(library, allowed):
    """No symbol is needed that a libc may lack, unless it is weak: musl starts no program with such a
    library."""
    rows = [line.split() for line in run("readelf", "-W", "--dyn-syms", library).splitlines()]
    names = {row[7].split("@")[0] for row in rows
             if len(row) >= 8 and row[4] == "GLOBAL" and row[6] == "UND"}
    return [f"imports {name}" for name in sorted(names - allowed) if not name.startswith("arctrace_")]


def unversioned(library, public, private):
    """Each exported function has the version `private` if it is the shim's, and else `public`; both are
    names of version nodes."""
    findings = []
    for line in run("readelf", "-W", "--dyn-syms", library).splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit() or fields[4] == "LOCAL" or fields[6] == "UND":
            continue
        name, _, version = fields[7].partition("@")
        wanted = private if name.startswith("arctrace_shim_") else public
        if fields[6] != "ABS" and version.lstrip("@") != wanted:
            findings.append(f"{name} has the version {version.lstrip('@') or 'none'}, not {wanted}")
    return findings


def versions(library, highest):
    """No symbol version of glibc is later than `highest`: the loader starts no program with such a library
    where libc is earlier, not even for a weak symbol."""
    def number(version):
        return [int(part) for part in version.split(".")]
    names = sorted(set(re.findall(r"Name: GLIBC_([\d.]+)", run("readelf", "-VW", library))), key=number)
    return [f"needs glibc {name}" for name in names if number(name) > number(highest)]


def needed(library, allowed):
    """There is no dependency but `allowed`: a program may lack others, or have other versions of them."""
    names = [re.search(r"\[(.*)\]", value)[1] for tag, value in dynamic(library) if tag == "NEEDED"]
    return [f"needs {name}" for name in names if name not in allowed]


def soname(library, wanted):
    names = [re.search(r"\[(.*)\]", value)[1] for tag, value in dynamic(library) if tag == "SONAME"]
    return [] if names == [wanted] else [f"soname is {names}, not {wanted}"]


def text_relocations(library):
    """There are no text relocations: they make code pages writable for a moment and private to the process."""
    found = [tag for tag, value in dynamic(library) if tag == "TEXTREL" or "TEXTREL" in value]
    return ["has text relocations"] if found else []


def pages_at_start(library, most):
    """The writable data without the large tables (src/base/large_table.hpp) are on at most so many pages: a start
    of any program touches all of them."""
    begin, size = next((int(row[0], 16), int(row[1], 16)) for row in re.findall(
        r"^\s+LOAD\s+0x\w+ (0x\w+) 0x\w+ 0x\w+ (0x\w+) RW ", run("readelf", "-lW", library), re.M))
    tables = re.search(r"\s\.bss\.large(?:\.first)?\s+NOBITS\s+(\w+)", run("readelf", "-SW", library))
    end = int(tables[1], 16) if tables else begin + size
    pages = (end - 1) // 4096 - begin // 4096 + 1
    return [] if pages <= most else [f"{pages} pages of data beside the large tables"]


def not_unloadable(library):
    """The library is NODELETE: hooks and thread-locals are still used after a dlclose."""
    if any(tag == "FLAGS_1" and "NODELETE" in value for tag, value in dynamic(library)):
        return []
    return ["can be unloaded (no NODELETE)"]


def bound_at_load(library):
    """The library binds NOW: a lazy binding would run the dynamic loader, with its lock, inside a hook."""
    if any(tag == "FLAGS" and "BIND_NOW" in value for tag, value in dynamic(library)):
        return []
    return ["binds its symbols lazily (no BIND_NOW)"]


def static_tls(library):
    """Thread-locals, if any, are initial-exec: the other models call into the loader."""
    if not re.search(r"^\s+TLS\s", run("readelf", "-lW", library), re.M):
        return []
    findings = []
    # AArch64's linker omits the flag; its relocations tell.
    if machine(library) == "X86-64" and not any(
            tag == "FLAGS" and "STATIC_TLS" in value for tag, value in dynamic(library)):
        findings.append("has thread-locals, but no STATIC_TLS")
    relocations = re.findall(r"R_\w*?_(?:DTPMOD\w*|TLSDESC\w*|TLS_DTPMOD\w*)",
                             run("readelf", "-rW", library))
    return findings + [f"dynamic thread-local: {name}" for name in sorted(set(relocations))]


def executable_stack(library):
    flags = re.findall(r"^\s+GNU_STACK(?:\s+0x\w+){5} (...) ", run("readelf", "-lW", library), re.M)
    return [] if flags == ["RW "] else [f"the stack's flags are {flags}, not RW"]


# Matches registers, and x87's operations, which need not name one. fs: is a prefix, no operation.
VECTOR_REGISTER = re.compile(r"%(?:[xyz]?mm\d+|k[0-7]|st)\b")
VECTOR_OPERATION = re.compile(r"^(?:f(?!s$)\w+|emms|v?(?:ld|st)mxcsr|xsave\w*|xrstor\w*|vzero\w+)$")
# Matches AArch64's registers, with SVE's, and the words that say how they round; but not the addresses of
# jumps.
AARCH64_REGISTER = re.compile(r"\b(?:[bhsdqvz](?:[12]?\d|3[01])|p(?:\d|1[0-5])|fpcr|fpsr)\b")
AARCH64_ADDRESS = re.compile(r"^(?:adrp?|bl?|b\.\w+|cbn?z|tbn?z|\.\w+)$")


def is_vector_instruction(of_machine, operation, operands):
    if of_machine == "AArch64":
        return not AARCH64_ADDRESS.match(operation) and bool(AARCH64_REGISTER.search(operands))
    return bool(VECTOR_REGISTER.search(operands) or VECTOR_OPERATION.match(operation))


# This function saves the vector state around a call of the loader, and restores it.
KEEPS_VECTORS = {"arctrace_keep_vectors": {"xsave", "xrstor", "stp", "ldp"}}
# This one only stores registers, which does not change them.
STORES_VECTORS = re.compile(r"writer\d+store_vectors")
STORE = re.compile(r"^(?:movq\s+%xmm\d,(?:0x\w+)?\(%r\w+\)|stp\s+d\d, d\d, \[x\d+(?:, #\d+)?\])$")


def vector_instructions(library):
    """No function uses vector (or x87) registers, because hooks don't save the program's."""
    findings, function = {}, "?"
    of_machine = machine(library)
    objdump = {"AArch64": "aarch64-linux-gnu-objdump", "X86-64": "x86_64-linux-gnu-objdump"}
    for line in run(objdump[of_machine], "-d", "--no-show-raw-insn", library).splitlines():
        label = re.match(r"^[0-9a-f]+ <(.*)>:$", line)
        if label:
            function = label[1]
            continue
        instruction = line.partition("\t")[2].partition("//")[0].strip()
        operation, _, operands = instruction.partition("\t" if "\t" in instruction else " ")
        if operation in KEEPS_VECTORS.get(function, ()):
            continue
        if STORES_VECTORS.search(function) and STORE.match(instruction):
            continue
        if operation and is_vector_instruction(of_machine, operation, operands):
            findings.setdefault(function, instruction)
    return [f"vector or x87 instruction in {name}: {text}" for name, text in findings.items()]
