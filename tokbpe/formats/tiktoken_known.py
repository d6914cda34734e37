"""The encodings that tiktoken knows by name: their files, patterns and special tokens."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Known(NamedTuple):
    """An encoding of tiktoken: the file with its pieces, its pattern and its special tokens."""

    url: str  # tiktoken's cache names the file by it
    sha256: str
    pattern: str
    special_tokens: Mapping[str, int]

    @property
    def file(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def is_json(self) -> bool:
        return self.file.endswith(".json")


SITE = "https://openaipublic.blob.core.windows.net/"
# The ids of this file are the ranks that tiktoken works out from it and GPT-2's merges.
GPT2_FILE = (
    f"{SITE}gpt-2/encodings/main/encoder.json",
    "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
)
R50K_FILE = (
    f"{SITE}encodings/r50k_base.tiktoken",
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
)
P50K_FILE = (
    f"{SITE}encodings/p50k_base.tiktoken",
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
)
CL100K_FILE = (
    f"{SITE}encodings/cl100k_base.tiktoken",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
)
O200K_FILE = (
    f"{SITE}encodings/o200k_base.tiktoken",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
)

END_OF_TEXT = "<|endoftext|>"
END_OF_PROMPT = "<|endofprompt|>"
FILL_IN = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
# tiktoken also gives 200018 to <|reserved_200018|>, which without_placeholders leaves out.
HARMONY = {
    "<|startoftext|>": 199998,
    END_OF_TEXT: 199999,
    "<|return|>": 200002,
    "<|constrain|>": 200003,
    "<|channel|>": 200005,
    "<|start|>": 200006,
    "<|end|>": 200007,
    "<|message|>": 200008,
    "<|call|>": 200012,
    END_OF_PROMPT: 200018,
}


def placeholder(id: int) -> str:
    """How o200k_harmony spells an id without a use."""
    return f"<|reserved_{id}|>"


def numbered(spellings: Iterable[str], first: int) -> dict[str, int]:
    return {spelling: id for id, spelling in enumerate(spellings, first)}


def with_placeholders(special_tokens: Mapping[str, int], ids: range) -> dict[str, int]:
    """Special tokens, and a placeholder for each other id."""
    free = sorted({*ids} - {*special_tokens.values()})
    return {**special_tokens, **{placeholder(id): id for id in free}}


def without_placeholders(special_tokens: Mapping[str, int]) -> dict[str, int]:
    """Special tokens but for placeholders of an id that another one has: an id has one spelling."""
    named = {id for spelling, id in special_tokens.items() if spelling != placeholder(id)}
    return {
        spelling: id
        for spelling, id in special_tokens.items()
        if id not in named or spelling != placeholder(id)
    }


KNOWN = {
    "gpt2": Known(*GPT2_FILE, "gpt2", {END_OF_TEXT: 50256}),
    "r50k_base": Known(*R50K_FILE, "r50k", {END_OF_TEXT: 50256}),
    "p50k_base": Known(*P50K_FILE, "p50k", {END_OF_TEXT: 50256}),
    "p50k_edit": Known(*P50K_FILE, "p50k", {END_OF_TEXT: 50256, **numbered(FILL_IN, 50281)}),
    "cl100k_base": Known(
        *CL100K_FILE,
        "cl100k",
        {END_OF_TEXT: 100257, **numbered(FILL_IN, 100258), END_OF_PROMPT: 100276},
    ),
    "o200k_base": Known(*O200K_FILE, "o200k", {END_OF_TEXT: 199999, END_OF_PROMPT: 200018}),
    "o200k_harmony": Known(*O200K_FILE, "o200k", with_placeholders(HARMONY, range(199998, 201088))),
}
