#!/usr/bin/env python3
"""The manual as a man page: docs/manual/muster.md in roff's macros, on standard output.

    scripts/man.py MANUAL.md VERSION >muster.1
"""

import re
import sys


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def inline(text):
    """Code in bold, what is stressed in bold, of a link its words."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts = re.split(r"(`[^`]*`|\*\*[^*]*\*\*)", text)
    return "".join(
        f"\\fB{escape(part.strip('`*'))}\\fR" if i % 2 else escape(part)
        for i, part in enumerate(parts))


def line_of(line):
    """One line of prose; a table's row is a paragraph that hangs from its first cell."""
    if line.startswith("|"):
        cells = [inline(cell.strip().replace("\\|", "|"))
                 for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        return ".TP\n" + cells[0] + "\n" + "; ".join(cell for cell in cells[1:] if cell)
    heading = re.match(r"(#+) (.*)", line)
    if heading:
        macro = ".SH" if len(heading.group(1)) < 3 else ".SS"
        return f'{macro} {inline(heading.group(2))}'
    if line.startswith("- "):
        return ".IP \\(bu 2\n" + inline(line[2:])
    return inline(line.strip()) if line.strip() else ".PP"


def page(text, version):
    out = [f'.TH MUSTER 1 "" "muster {version}"', ".SH NAME",
           "muster \\- run functions on a cluster of tasks"]
    in_code = False
    text = re.sub(r"^\|.*\|\n\|[ |:-]*\|\n", "", text, flags=re.M)   # heads of tables
    for line in text.splitlines():
        if line.startswith("```"):
            out.append(".fi\n.RE" if in_code else ".RS 4\n.nf")
            in_code = not in_code
        elif in_code:
            out.append(escape(line))
        elif line.startswith("# "):
            out.append(".SH DESCRIPTION")
        else:
            out.append(line_of(line))
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(page(file.read(), sys.argv[2]))
