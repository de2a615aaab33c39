"""The balance sheet of a run, for a person."""


def sheet(title, blocks):
    """Lines of name, value and note in blocks, the columns of all aligned."""
    width = max(len(name) for block in blocks for name, _, _ in block)
    lines = [title]
    for block in blocks:
        lines.append("")
        lines += [f"{name:<{width}} {value:>8}  {note}".rstrip() for name, value, note in block]
    return "\n".join(lines)
