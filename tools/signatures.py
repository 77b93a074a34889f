"""`make signatures`: note for which types kernels have been compiled, for wheels and for `warm`."""

from __future__ import annotations

from collections.abc import Iterator

from eventide.kernels.machine_code.cache import KernelCache, folders, read_checked
from eventide.kernels.machine_code.signatures import parse_signature
from eventide.kernels.machine_code.warming import LISTED, listed_kernels, named_kernel


def main() -> None:
    """Add what has been compiled since to the list, and leave out what is no kernel any more."""
    listed = {f"{name}: {text}" for name, texts in listed_kernels().items() for text in texts}
    lines = {line for line in listed | set(compiled_lines()) if is_kernel(line)}
    LISTED.write_text("".join(f"{line}\n" for line in sorted(lines)))


def compiled_lines() -> Iterator[str]:
    """Yield a line for each kernel that is compiled for this machine, with its types."""
    for folder in folders():
        for path in folder.glob("*.code"):
            content = read_checked(path)
            if content is not None:
                name = path.name.partition(".py3")[0]
                types, _, _ = content.partition(b"\n")
                yield f"{name}: {types.decode()}"


def is_kernel(line: str) -> bool:
    """Whether a line names a kernel that exists, and types that exist."""
    name, _, text = line.partition(": ")
    try:
        kernel = named_kernel(name)  # the module defines the types
        parse_signature(text)
        return isinstance(kernel._cache, KernelCache)
    except (ImportError, AttributeError, ValueError):
        return False


if __name__ == "__main__":
    main()
