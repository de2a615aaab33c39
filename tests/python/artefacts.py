"""Whether what was built for Lambda can run there: the step between a green build and a function
that fails at each start.

Usage: artefacts.py ARCHITECTURE FILE..., each a zip or a bootstrap.
"""

import pathlib
import stat
import struct
import sys
import zipfile

# Amazon Linux 2023, which `provided.al2023` is, has glibc 2.34.
GLIBC_MAX = (2, 34)
# AWS Lambda, quotas: zipped for an upload by API, and unzipped.
ZIP_BYTES_MAX = 50 * 1024 * 1024
CODE_BYTES_MAX = 250 * 1024 * 1024
# ELF header, `e_machine`.
MACHINES = {"x86_64": 62, "arm64": 183}
SECTION_VERNEED = 0x6FFFFFFE


class Unusable(Exception):
    """Why a function made of this would not start."""


def bootstrap_of(path):
    """The program in a zip, or the file itself."""
    content = path.read_bytes()
    if path.suffix != ".zip":
        if not path.stat().st_mode & stat.S_IXUSR:
            raise Unusable("it is not executable")
        return content
    if len(content) > ZIP_BYTES_MAX:
        raise Unusable(f"the zip has {len(content)} bytes, at most {ZIP_BYTES_MAX}")
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if "bootstrap" not in entries:
            raise Unusable(f"no `bootstrap` at the root, but {sorted(entries)}")
        if not entries["bootstrap"].external_attr >> 16 & stat.S_IXUSR:
            raise Unusable("`bootstrap` is not executable")
        return archive.read("bootstrap")


def check(path, architecture):
    """Checks one file; returns the newest glibc that it needs."""
    program = bootstrap_of(path)
    if len(program) > CODE_BYTES_MAX:
        raise Unusable(f"the program has {len(program)} bytes, at most {CODE_BYTES_MAX}")
    if program[:6] != b"\x7fELF\x02\x01":
        raise Unusable("it is no 64-bit ELF program")
    [machine] = struct.unpack_from("<H", program, 18)
    if machine != MACHINES[architecture]:
        raise Unusable(f"it is built for machine {machine}, not for {architecture}")
    newest = max(glibc_versions(program), default=(0, 0))
    if newest > GLIBC_MAX:
        raise Unusable(f"it needs glibc {newest[0]}.{newest[1]}, at most 2.34 is there")
    return newest


def glibc_versions(program):
    """The versions of glibc that an ELF program names, from its table of needed versions."""
    [offset] = struct.unpack_from("<Q", program, 40)
    size, count = struct.unpack_from("<HH", program, 58)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", program, offset + index * size) for index in range(count)
    ]
    for _, kind, _, _, start, _, link, _, _, _ in sections:
        if kind != SECTION_VERNEED:
            continue
        names = sections[link][4]
        for name in needed(program, start):
            text = program[names + name : program.index(b"\0", names + name)]
            if text.startswith(b"GLIBC_2"):
                yield tuple(int(part) for part in text[6:].split(b".")[:2])


def needed(program, at):
    """Walks files and their versions; yields where each version's name begins."""
    while True:
        _, count, _, first, following = struct.unpack_from("<HHIII", program, at)
        version = at + first
        for _ in range(count):
            _, _, _, name, step = struct.unpack_from("<IHHII", program, version)
            yield name
            version += step
        if following == 0:
            return
        at += following


def main(architecture, *files):
    bad = 0
    for file in map(pathlib.Path, files):
        try:
            major, minor = check(file, architecture)
        except Unusable as why:
            bad += 1
            print(f"{file}: {why}", file=sys.stderr)
            continue
        size = file.stat().st_size / 1_000_000
        print(f"{file}: {size:.2f} MB, {architecture}, glibc {major}.{minor}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
