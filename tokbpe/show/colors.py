"""Colors that are read on any page, light or dark: text never stands on the page's own background
in a color of ours, and what has a background has its own text color.

Their contrast, at least 4.5 for text, is tested.
"""

INK = "#1b1f24"  # text on a tint
MARK = "#4f5660"  # on a tint: what stands for something that cannot be seen
TINTS = ("#bcd8f0", "#f6d0ae", "#bfe3c8", "#ecc6de", "#efe2a4", "#cfc8ef")  # of tokens, in turn
PLAIN = "#e3e6ea"  # of what is not to be noticed
SPECIAL, SPECIAL_INK = "#4a5160", "#ffffff"  # of special tokens
LINE = "#7d8590"  # lines on the page itself
WINNER = "#ec6c00"  # around the pair that is merged next

# A heat map goes from pale to dark.
PALE, DARK = (232, 240, 248), (8, 69, 128)


def heat(value: int, highest: int) -> tuple[str, str]:
    """Background and text color of a count, of which the highest is known."""
    share = value / highest
    mixed = [round(pale + (dark - pale) * share) for pale, dark in zip(PALE, DARK)]
    background = "#" + "".join(f"{part:02x}" for part in mixed)
    return background, max("#000000", "#ffffff", key=lambda ink: contrast(ink, background))


def contrast(one: str, other: str) -> float:
    """How well two colors are told apart, from 1 to 21: the contrast ratio of WCAG 2."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    """The relative luminance of a color like "#1b1f24", from 0 to 1."""
    red, green, blue = (linear(int(color[place : place + 2], 16) / 255) for place in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
