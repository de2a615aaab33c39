"""Real UTF-8 documents: what this machine has, and what is easily mangled."""

import email
import importlib.metadata
import os
import pathlib
import pydoc
import subprocess

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

# Files of each format. A fixed number, so that each is served for the same URLs everywhere.
FILES = 40
# Largest document taken from the machine, in bytes.
FILE_BYTES_MAX = 400_000
# Documents of Rust's own manual, which is there or not.
MANUAL_PAGES = 12

# Modules whose documentation pydoc writes as HTML.
MODULES = """
argparse ast asyncio base64 bisect calendar cmath codecs collections configparser csv dataclasses
datetime decimal difflib email enum fractions ftplib functools gettext gzip hashlib heapq html
http.client inspect io ipaddress itertools json locale logging math mimetypes optparse pathlib
pickle plistlib queue random re sched secrets shlex socket sqlite3 statistics string struct
textwrap threading types unicodedata unittest urllib.parse uuid wave zipfile
""".split()

LONG = "a line without any end \u2014 " * 12_000

# What breaks when text is decoded, normalised, stripped, split into lines or escaped on its way.
TRICKY = {
    "astral": "\U0001d49e\U0001f9ff\U00020bb7\U0010ffff \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "bom": "\ufeff# a byte order mark is text here\n",
    "bom_inside": "one\ufefftwo\ufeff",
    "combining": "e\u0301 \u00e9 A\u030a \u212b \ufb01 \u1e9b\u0323 \u0958",
    "control": "".join(map(chr, range(1, 32))) + "\x7f" + "".join(map(chr, range(0x80, 0xA0))),
    "crlf": "one\r\ntwo\r\n\r\nthree\r\n",
    "empty": "",
    "emoji": "\U0001f600 \U0001f1e9\U0001f1ea \u2764\ufe0f \U0001f44d\U0001f3fd\n",
    "escapes": '\\n \\u0041 \\" " \' & &amp; &#0; <!-- --> ]]> </script> {{ }} %00 ${x} \\\\',
    "lone_cr": "one\rtwo\rthree",
    "long_line": LONG,
    "no_final_newline": "the last line ends here",
    "only_newlines": "\n" * 1_000,
    "private_and_noncharacters": "\ue000 \uf8ff \ufdd0 \ufffe \uffff \U0001ffff \ufffd",
    "right_to_left": "\u202eabc\u202c \u05e9\u05dc\u05d5\u05dd "
    "\u0645\u0631\u062d\u0628\u0627 \u2066x\u2069",
    "separators": "one\u2028two\u2029three\u0085four\x0bfive\x0csix\n",
    "spaces": " \t \u00a0\u2003\u200b\u3000 lead and trail \t \n \n\n",
}


def write_corpus(folder):
    """Writes `FILES` HTML and `FILES` Markdown documents."""
    folder.mkdir()
    for suffix, real in (("html", real_html()), ("md", real_markdown())):
        documents = {f"tricky-{name}": text.encode() for name, text in TRICKY.items()}
        while len(documents) < FILES:
            name, content = next(real)
            if len(content) <= FILE_BYTES_MAX:
                documents[name] = content
        for name, content in documents.items():
            content.decode("utf-8")
            (folder / f"{name}.{suffix}").write_bytes(content)


def real_html():
    command = ["rustc", "--print", "sysroot"]
    sysroot = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    manual = pathlib.Path(sysroot or "no-such-folder", "share/doc/rust/html/book")
    for path in sorted(manual.glob("ch*.html"))[:MANUAL_PAGES]:
        yield f"manual-{path.stem}", path.read_bytes()
    for name in MODULES:
        page = pydoc.html.page(name, pydoc.html.document(pydoc.locate(name), name))
        yield f"python-{name}", page.encode()


def real_markdown():
    for path in sorted(REPOSITORY.glob("*.md")):
        yield f"repository-{path.stem}", path.read_bytes()
    for package in sorted(importlib.metadata.distributions(), key=lambda it: it.name.lower()):
        description = email.message_from_string(package.read_text("METADATA")).get_payload()
        yield f"package-{package.name}", description.encode()
    cargo = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    for path in sorted(cargo.glob("registry/src/*/*/README.md")):
        yield f"crate-{path.parent.name}", path.read_bytes()
