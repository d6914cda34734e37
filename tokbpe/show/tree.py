"""The tree of merges behind a word, drawn as SVG.

All text stands in boxes of its own color, so that it is read on any page, and also where the
drawing is an image, which does not know the page.
"""

import html
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from tokbpe.show import colors, markup
from tokbpe.show.shown import Token, shown_tokens
from tokbpe.show.steps import merge_steps
from tokbpe.tokenizer import Tokenizer

MOST_SYMBOLS = 200

# In pixels.
COLUMN = 62  # at least, of a symbol
GAP = 8
LEVEL = 84  # from one row of boxes to the next
BOX = 52  # the height of a box; of that of a symbol, which says less:
SMALL_BOX = 38
CHARACTER = 8.5  # the width of one that is not wide, at 14 pixels
SMALL_CHARACTER = 6.2  # at 10 pixels


@dataclass
class Node:
    """A symbol, or what a merge makes of two nodes.

    rank: of the merge; None for symbols, and for what is a token without a merge (`taken`).
    """

    token: Token
    rank: int | None = None
    children: tuple["Node", ...] = ()
    taken: bool = False
    height: int = 0  # 0 for symbols
    left: float = 0.0  # where its symbols begin and end in the drawing
    right: float = 0.0
    root: int = 0  # the number of the token that it belongs to
    is_root: bool = False

    @property
    def small(self) -> str:
        """What stands below the piece in its box."""
        return f"id {self.token.id}"

    @property
    def reason(self) -> str:
        """How it has come about."""
        if self.rank is not None:
            return f"rank {self.rank}"
        if self.taken:
            return self.token.kind if self.token.kind != "piece" else "whole piece, no merge"
        return ""

    @property
    def width(self) -> float:
        """How much room its own text needs."""
        wide = sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in self.token.plain)
        small = max(len(self.small), len(self.reason))
        return max(wide * CHARACTER, small * SMALL_CHARACTER) + 14


class MergeTree:
    """The merges behind a word, as a tree for each of its tokens.

    roots: the nodes of the tokens.
    nodes: all, each behind those that it is made of.
    """

    def __init__(self, tokenizer: Tokenizer, word: str | bytes) -> None:
        states = merge_steps(tokenizer, word)
        first = states[0]
        if len(first.ids) > MOST_SYMBOLS:
            raise ValueError(
                f"the word has {len(first.ids)} symbols; trees of at most {MOST_SYMBOLS} are drawn"
            )
        self.roots = [
            Node(token, taken=place in first.taken)
            for place, token in enumerate(shown_tokens(tokenizer, first.ids))
        ]
        self.leaves = list(self.roots)
        self.nodes = list(self.roots)
        for state in states[1:]:
            assert state.place is not None
            place = state.place
            pair = self.roots[place], self.roots[place + 1]
            (token,) = shown_tokens(tokenizer, [state.ids[place]])
            node = Node(token, state.rank, pair, height=1 + max(half.height for half in pair))
            self.roots[place : place + 2] = [node]
            self.nodes.append(node)
        self.lay_out()

    def lay_out(self) -> None:
        """Place the symbols side by side, and what is made of them above."""
        place = 0.0
        for leaf in self.leaves:
            leaf.left, leaf.right = place, place + max(COLUMN, leaf.width)
            place = leaf.right + GAP
        for node in self.nodes:
            if node.children:
                node.left, node.right = node.children[0].left, node.children[-1].right
        for number, root in enumerate(self.roots):
            root.root, root.is_root = number, True
        for node in reversed(self.nodes):
            for child in node.children:
                child.root = node.root

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The trees as lines of text: a node, and below it, indented, what it is made of."""
        waiting = [(root, 0) for root in reversed(self.roots)]
        while waiting:
            node, depth = waiting.pop()
            reason = f", {node.reason}" if node.reason else ""
            yield f"{'  ' * depth}{node.token.plain}  {node.small}{reason}"
            waiting += [(child, depth + 1) for child in reversed(node.children)]

    @property
    def description(self) -> str:
        """What the drawing shows, in a sentence."""
        tokens = " ".join(f"[{root.token.plain}]" for root in self.roots)
        count = sum(node.rank is not None for node in self.nodes)
        symbols = markup.count(len(self.leaves), "symbol")
        return f"{symbols} become {tokens} by {markup.count(count, 'merge')}"

    def _repr_svg_(self) -> str:
        width = max((leaf.right for leaf in self.leaves), default=0) + 2
        highest = max((node.height for node in self.nodes), default=0)
        height = highest * LEVEL + BOX + 2
        parts = [line for node in self.nodes for line in edges(node, highest)]
        parts += [box(node, highest) for node in self.nodes]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="-1 -1 {width:g} {height:g}" role="img">'
            f"<title>{html.escape(self.description)}</title>"
            f"<desc>{html.escape('; '.join(self.lines()))}</desc>{''.join(parts)}</svg>"
        )


def merge_tree(tokenizer: Tokenizer, word: str | bytes) -> MergeTree:
    """The tree of merges behind a word, or a short text: symbols below, above them what each merge
    makes of two neighbors, with its rank and id.

    ValueError for a word of more than 200 symbols, and what `merge_steps` raises.
    """
    return MergeTree(tokenizer, word)


def center(node: Node) -> float:
    return (node.left + node.right) / 2


def top(node: Node, highest: int) -> float:
    """Where its box begins; those of symbols end on one line."""
    return (highest - node.height) * LEVEL + (0 if node.children else BOX - box_height(node))


def box_height(node: Node) -> int:
    return BOX if node.reason else SMALL_BOX


def edges(node: Node, highest: int) -> Iterator[str]:
    """The lines from a node to those that it is made of."""
    start = top(node, highest) + box_height(node)
    for child in node.children:
        end = top(child, highest)
        bend = min(LEVEL - BOX, end - start) / 2
        yield (
            f'<path d="M{center(node):g} {start:g}C{center(node):g} {start + bend:g} '
            f'{center(child):g} {start:g} {center(child):g} {start + 2 * bend:g}V{end:g}" '
            f'fill="none" stroke="{colors.LINE}" stroke-width="1.5"/>'
        )


def box(node: Node, highest: int) -> str:
    """A node, as wide as its text."""
    inside = node.rank is not None or node.is_root
    tint, ink = colors.TINTS[node.root % len(colors.TINTS)] if inside else colors.PLAIN, colors.INK
    if node.token.kind != "piece":
        tint, ink = colors.SPECIAL, colors.SPECIAL_INK
    x, y, height = center(node), top(node, highest), box_height(node)
    width = max(node.width, COLUMN - GAP)
    small = "".join(
        f'<text x="{x:g}" y="{y + 32 + 12 * line:g}" font-size="10" fill="{ink}">{text}</text>'
        for line, text in enumerate(filter(None, [node.small, node.reason]))
    )
    return (
        f'<g font-family="monospace" text-anchor="middle">'
        f'<rect x="{x - width / 2:g}" y="{y:g}" width="{width:g}" height="{height}" rx="6" '
        f'fill="{tint}"/><text x="{x:g}" y="{y + 18:g}" font-size="14" font-weight="bold" '
        f'fill="{ink}">{html.escape(node.token.plain)}</text>{small}</g>'
    )
