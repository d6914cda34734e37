"""Build the API reference from the docstrings, as pages of HTML; warnings are errors.

python .ci/reference/pages.py [FOLDER]     (build/reference if none is given)

A public name without a docstring, and a name of the package in one that leads nowhere, are
errors, too. Needs the extra `docs`.
"""

import re
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import pdoc.doc
import pdoc.render
import signatures

HERE = Path(__file__).parent
# What has a page, and which of its names stand there; None: all that are public.
PAGES: dict[str, tuple[str, ...] | None] = {
    "tokbpe": None,
    "tokbpe.show": None,
    "tokbpe.show.shown": ("Tokens", "Token", "Comparison"),
    "tokbpe.show.steps": ("MergeSteps", "State"),
    "tokbpe.show.tree": ("MergeTree", "Node"),
    "tokbpe.show.learning": ("TrainingRun", "Step", "PairTable"),
    "tokbpe.show.summary": ("Merges",),
    "tokbpe.show.figures": ("MergeCounts", "PieceLengths", "Compression", "Languages"),
    "tokbpe.page": ("written", "learned"),
    "tokbpe.metrics": ("Measure", "measure", "measures", "bits_per_byte", "token_bytes"),
    "tokbpe.compat": ("as_tiktoken", "Encoding"),
    "tokbpe.patterns": ("Pattern", "get", "to_printable", "from_printable"),
    "tokbpe.methods": ("register", "Method", "Options", "Encoder", "Merge"),
    "tokbpe.vocabulary": ("Vocabulary",),
    "tokbpe.offsets": ("Encoded", "EncodedBytes"),
    "tokbpe.tally": ("Usage",),
    "tokbpe.count_files": ("Arrays",),
    "tokbpe.packing": ("Pair", "Packed"),
    "tokbpe.batches": ("Dropped",),
    "tokbpe.reference": None,
    "tokbpe.fast": None,
}

ITEM = re.compile(r"([a-z_]\w*(?:, \w+)*): (.*)")
WORKED = re.compile(r"[(\[\"'b].* -> .+")
CODE = re.compile(r"(`+.*?`+)", re.DOTALL)
LOST_NAME = re.compile(r"<code>(tokbpe\.(?!h<)[\w.]+)</code>")


# Docstrings as Markdown


def as_markdown(docstring: str) -> str:
    """A docstring of the package as Markdown.

    `name: what it is` begins an argument, whose further lines are indented; an example is what
    stands behind `>>>` up to the next empty line, or `input -> result` on lines of their own.
    """
    paragraphs = re.split(r"\n\s*\n", docstring.strip("\n"))
    return "\n\n".join(paragraph_as_markdown(paragraph) for paragraph in paragraphs if paragraph)


def paragraph_as_markdown(paragraph: str) -> str:
    lines = paragraph.splitlines()
    if lines[0].lstrip().startswith(">>>"):
        return "\n".join(["```pycon", *textwrap.dedent(paragraph).splitlines(), "```"])
    numbered = [re.sub(r"^ +(\d+\.) ", r"\1 ", line) for line in lines]
    if numbered != lines:
        return escaped("\n".join(numbered))
    if lines[0].startswith("    ") or all(WORKED.fullmatch(line) for line in lines):
        return "\n".join("    " + line.removeprefix("    ") for line in lines)
    if not any(map(ITEM.fullmatch, lines)):
        return escaped(paragraph)
    return "\n".join(items_as_list(lines))


def items_as_list(lines: list[str]) -> Iterator[str]:
    before = ""
    for line in lines:
        item = ITEM.fullmatch(line)
        if item is None:
            yield escaped(line)
        else:
            # A list begins behind an empty line.
            yield ("" if ITEM.fullmatch(before) or before.startswith(" ") else "\n") + (
                f"- **`{item[1]}`**: {escaped(item[2])}"
            )
        before = line


def escaped(text: str) -> str:
    """Text whose stars and angle brackets are no Markdown, but for code in it."""
    parts = CODE.split(text)
    for number in range(0, len(parts), 2):
        parts[number] = re.sub(r"(?<!^)\*|^\*(?! )", r"\\*", parts[number]).replace("<", "&lt;")
    return "".join(parts)


# What stands on the pages


def hidden(module: str) -> bool:
    """Whether a module of the package has no page."""
    return module.startswith("tokbpe.") and module not in PAGES


def page_of(found: type) -> str | None:
    """The module on whose page a class stands; None if it stands on none."""
    for module in ("tokbpe", found.__module__):
        if module in PAGES and found.__name__ in (
            PAGES[module] or getattr(sys.modules[module], "__all__", ())
        ):
            return module
    return None


def shown(doc: pdoc.doc.Doc) -> bool:
    """Whether a name stands on the page of its module."""
    if doc.kind == "module":
        return doc.fullname in PAGES
    chosen = PAGES[doc.modulename]
    if chosen is not None and doc.qualname.split(".")[0] not in chosen:
        return False
    if doc.name.isupper():  # a constant
        return False
    if isinstance(doc, pdoc.doc.Variable) and not doc.docstring:
        return not doc.name.startswith("_") and doc.annotation is not signatures.EMPTY
    if doc.name == "__init__" and isinstance(doc, pdoc.doc.Function):
        return set(doc.signature.parameters) != {"self", "args", "kwargs"}  # that of a Protocol
    return not doc.name.startswith("_")


def prepared(name: str) -> pdoc.doc.Module:
    """A module with what its classes inherit from modules without a page, and with the signatures
    of stubs."""
    module = pdoc.doc.Module.from_name(name)
    module.submodules = [pdoc.doc.Module.from_name(page) for page in PAGES if page != name] * (
        name == "tokbpe"
    )
    for member in module.members.values():
        signatures.take_stub(member)
        if isinstance(member, pdoc.doc.Class):
            member.bases = [base for base in member.bases if not hidden(base[0])]
            for (origin, _), inherited in member.inherited_members.items():
                if hidden(origin):
                    member.own_members.extend(inherited)
        for doc in everything(member):
            signatures.write(doc, owner(doc, module), page_of)
    return module


# The pages


def build(folder: Path) -> list[str]:
    """Write all pages; what is wrong with them."""
    pdoc.render.configure(
        docformat="markdown",
        show_source=True,
        template_directory=HERE,
        footer_text="tokbpe",
    )
    pdoc.render.env.globals["shown"] = shown
    modules = {name: prepared(name) for name in PAGES}
    wrong = [*undocumented(modules)]
    for module in modules.values():
        for doc in everything(module):
            doc.docstring = as_markdown(doc.docstring)
    for name, module in modules.items():
        page = pdoc.render.html_module(module, modules)
        wrong += [f"{name}: the name {lost} leads nowhere" for lost in LOST_NAME.findall(page)]
        path = folder / f"{name.replace('.', '/')}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    (folder / "index.html").write_text(pdoc.render.html_index(modules), encoding="utf-8")
    (folder / "search.js").write_text(pdoc.render.search_index(modules), encoding="utf-8")
    return wrong


def everything(doc: pdoc.doc.Doc) -> Iterator[pdoc.doc.Doc]:
    """A module and all that is documented in it."""
    yield doc
    if isinstance(doc, pdoc.doc.Namespace):
        for member in doc.own_members:
            if member.kind != "module":
                yield from everything(member)


def undocumented(modules: Mapping[str, pdoc.doc.Module]) -> Iterator[str]:
    """Names that are not there, and functions and classes that nothing is said of; what a class
    has beside functions stands in its own docstring."""
    for name, module in modules.items():
        chosen = PAGES[name] or ()
        yield from (f"{name} has no {absent}" for absent in chosen if absent not in module.members)
        for doc in everything(module):
            on_page = doc is module or shown(doc) and shown(owner(doc, module) or doc)
            told_elsewhere = doc.kind == "variable" or doc.name == "__init__"
            if on_page and not told_elsewhere and not doc.docstring:
                yield f"{doc.fullname} has no docstring"


def owner(doc: pdoc.doc.Doc, module: pdoc.doc.Module) -> pdoc.doc.Doc | None:
    """The class that a name stands in, if it stands in one."""
    return module.get(doc.qualname.rpartition(".")[0]) if "." in doc.qualname else None


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/reference")
    warnings.simplefilter("error")
    wrong = build(folder)
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{folder}/index.html")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
