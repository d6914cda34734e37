"""The command line on tokenizers of all formats: read, described, converted."""

import hashlib
import itertools
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from huggingface_samples import template, token
from tokbpe import Tokenizer, cli, describe, engines, files, patterns, usage
from tokbpe.formats import detect, tiktoken_known
from tokbpe.patterns import Pattern
from tokbpe.vocabulary import Vocabulary

TEXT = "low lower lowest, newer newest  12345 Grüße 🐈\n"
BYTES = tuple(bytes([byte]) for byte in range(256))
# What each format needs to be told of OWN, and the formats that can hold it, all of them.
WAYS = {
    "own.tokbpe": "",
    "own.tiktoken": "--pattern gpt2",
    "tokenizer.json": "",
    "hf": "",
    "two": "",
    "two/vocab.json": "--merges-file two/merges.txt",
    "own.json": "--pattern gpt2",
}
posix = pytest.mark.skipif(os.name != "posix", reason="files of POSIX")


@pytest.fixture(scope="module")
def own():
    return Tokenizer(TEXT * 3, method="bpe", vocabulary_size=280, pattern="gpt2")


@pytest.fixture(scope="module")
def written(own, tmp_path_factory):
    """A folder with one tokenizer in all formats."""
    folder = tmp_path_factory.mktemp("formats")
    own.save(folder / "own.tokbpe")
    own.to_tiktoken(folder / "own.tiktoken")
    own.to_huggingface(folder / "tokenizer.json")
    own.to_json(folder / "own.json")
    for name in "hf", "two":
        (folder / name).mkdir()
    shutil.copy(folder / "tokenizer.json", folder / "hf")
    own.to_gpt2(folder / "two")
    (folder / "text").write_text(TEXT, encoding="utf-8")
    return folder


@pytest.fixture
def run(written, tmp_path, monkeypatch, capsysbinary):
    """Run a command in a copy of that folder; its exit code, output and errors."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)

    def run(command, *more):
        try:
            code = cli.main([*command.split(), *more])
        except SystemExit as exit:
            code = exit.code
        output = capsysbinary.readouterr()
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
        return code, output.out, output.err.decode()

    return run


def line_of(ids):
    return f"{' '.join(map(str, ids))}\n".encode()


def facts(run, command):
    code, output, error = run(f"inspect {command} --json")
    assert (code, error) == (0, "")
    return json.loads(output)


# What is read


@pytest.mark.parametrize(("path", "told"), WAYS.items())
def test_every_command_reads_every_format(run, own, path, told):
    assert run(f"encode {path} text {told}") == (0, line_of(own.encode(TEXT)), "")
    Path("ids").write_bytes(line_of(own.encode(TEXT)))
    assert run(f"decode {path} ids {told}") == (0, TEXT.encode(), "")
    assert facts(run, f"{path} {told}")["vocab_size"] == own.vocab_size
    assert run(f"convert {path} new --to tokbpe {told}") == (0, b"", "")
    assert Tokenizer.load("new").encode(TEXT) == own.encode(TEXT)


@pytest.mark.parametrize("path", [path for path in WAYS if Path(path).suffix])
@pytest.mark.parametrize("name", ["x", "x.json", "x.tokbpe"])
def test_a_format_is_told_by_its_content(run, path, name):
    Path(path).rename(name)
    format = {"own.tokbpe": "tokbpe", "own.tiktoken": "tiktoken", "own.json": "json"}.get(
        path, "gpt2" if path.startswith("two") else "huggingface"
    )
    found = facts(run, f"{name} {WAYS[path]}")
    assert (found["format"], found["file"]) == (format, name)


def test_a_json_file_may_be_written_in_other_ways(run):
    for name in "own.json", "tokenizer.json":
        content = json.loads(Path(name).read_text(encoding="utf-8"))
        text = json.dumps(dict(reversed(content.items())), indent=4)
        Path(name).write_bytes(b"\xef\xbb\xbf\r\n" + text.encode())
    assert facts(run, "own.json")["format"] == "json"
    assert facts(run, "tokenizer.json")["format"] == "huggingface"


def test_a_folder_with_a_tokenizer_json_is_hugging_faces(run):
    shutil.copy("tokenizer.json", "two")
    found = facts(run, "two")
    assert (found["format"], found["file"]) == (
        "huggingface",
        os.path.join("two", "tokenizer.json"),
    )


@posix
def test_a_file_is_read_once(run, written):
    """So a pipe will do."""
    for name in "own.tokbpe", "own.tiktoken", "own.json", "tokenizer.json":
        reader, writer = os.pipe()
        os.write(writer, (written / name).read_bytes())
        os.close(writer)
        assert facts(run, f"/dev/fd/{reader} {WAYS[name]}")["vocab_size"] == 280
        os.close(reader)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs a file without an end")
def test_what_is_no_tokenizer_is_not_read_on(run):
    code, _, error = run("inspect /dev/zero")
    assert (code, error) == (1, "tokbpe: error: /dev/zero: this is a device, and no file\n")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs a file without an end")
@pytest.mark.parametrize(
    "command",
    [
        "train /dev/zero --vocab-size 300 -o out",
        "count /dev/zero -o out.npz",
        "encode own.tokbpe /dev/zero -o out",
        "decode own.tokbpe /dev/zero",
    ],
)
def test_text_without_an_end_is_not_read(run, command):
    code, output, error = run(command)
    assert (code, output) == (1, b"")
    assert error == "tokbpe: error: /dev/zero: this is a device, and no file\n"
    assert not [*Path().glob("out*")]


# Rank files


def test_special_tokens_of_a_rank_file(run):
    Path("text").write_text("low<|a=b|><|e|>", encoding="utf-8")
    told = "--pattern gpt2 --special <|e|>=300 --special <|a=b|>=301"
    _, ids, error = run(f"encode own.tiktoken text {told} --allow-special all")
    assert (ids.split()[-2:], error) == ([b"301", b"300"], "")
    found = facts(run, f"own.tiktoken {told}")
    assert found["special_tokens"] == {"<|e|>": 300, "<|a=b|>": 301}
    assert found["gaps"] == [[280, 299]]


def test_patterns_of_a_rank_file(run):
    def pattern(text):
        code, output, error = run("inspect own.tiktoken --json --pattern", text)
        assert (code, error) == (0, "")
        found = json.loads(output)
        return found["pattern"], found["drops_text"]

    assert pattern("none") == (None, False)
    assert pattern("qwen3") == ("qwen2", False)
    assert pattern(patterns.to_tiktoken(patterns.NAMED["cl100k"])) == ("cl100k", False)
    assert pattern(r"\p{L}+|\s+$") == (r"\p{L}+|\s+\Z", True)


@pytest.fixture
def vocab(data, monkeypatch, tmp_path):
    """The folder of real vocabularies; and tiktoken's cache folder, with the one of r50k."""
    cache = tmp_path / "cache"
    cache.mkdir()
    url = tiktoken_known.KNOWN["r50k_base"].url
    place = cache / hashlib.sha1(url.encode()).hexdigest()
    place.symlink_to((data / "vocab" / "r50k_base.tiktoken").resolve())
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
    return data / "vocab"


def test_known_encodings(run, vocab):
    Path("any").symlink_to((vocab / "r50k_base.tiktoken").resolve())
    for command in (
        "r50k_base",
        "any --name r50k_base",
        f"{vocab}/r50k_base.tiktoken",
        f"{vocab} --name r50k_base",
    ):
        found = facts(run, command)
        assert found["special_tokens"] == {"<|endoftext|>": 50256}
        assert (found["pattern"], found["format"]) == ("gpt2", "tiktoken")
    # tiktoken takes GPT-2's pieces from its vocab, whose merges it needs to know no more.
    assert facts(run, f"{vocab}/gpt2/encoder.json --name gpt2")["merge_rule"] == "rank_by_piece"
    code, _, error = run("inspect o200k_base")
    assert (code, "o200k_base.tiktoken is not in tiktoken's cache folder" in error) == (1, True)


def test_a_path_goes_before_a_name(run):
    Path("two").rename("gpt2")
    assert facts(run, "gpt2")["format"] == "gpt2"


# GPT-2's two files


def test_special_tokens_in_a_vocab(run):
    ids = json.loads(Path("two/vocab.json").read_text(encoding="utf-8"))
    Path("two/vocab.json").write_text(json.dumps({**ids, "<s>": 280}), encoding="utf-8")
    assert run("inspect two")[0] == 1
    assert facts(run, "two --special <s>=280")["special_tokens"] == {"<s>": 280}
    code, _, error = run("inspect two --special <s>=281")
    assert (code, error.endswith("the special token '<s>' is 280, not 281\n")) == (1, True)


# inspect


def test_inspect_shows_what_was_read(run):
    output = run("inspect two --merges 1")[1].decode().splitlines()
    shown = dict(line.split("  ", 1) for line in output)
    shown = {name: value.strip() for name, value in shown.items()}
    assert shown["file"] == os.path.join("two", "vocab.json")
    assert shown["merges file"] == os.path.join("two", "merges.txt")
    assert shown["format"] == "gpt2"
    assert (shown["vocab size"], shown["pieces"], shown["gaps"]) == ("280", "280", "none")
    assert (shown["merge rule"], shown["merges"]) == ("merge_list", "24")
    assert (shown["piece lookup"], shown["lossless"]) == ("no", "yes")
    assert (shown["never made"], shown["cut alone"]) == ("none", "none")
    assert shown["first merges"].startswith("256")


def test_inspect_a_tokenizer_json(run, own):
    content = json.loads(Path("tokenizer.json").read_text(encoding="utf-8"))
    names = {"<s>": 300, "<a\n>": 281}
    content["added_tokens"] = [
        token(name, id, name == "<s>", "rstrip") for name, id in names.items()
    ]
    content["model"]["vocab"].update(names)
    content["normalizer"] = {"type": "NFC"}
    content["post_processor"] = template(["<s>", "A"], {"<s>": [300]})
    Path("tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    output = run("inspect tokenizer.json")[1].decode().splitlines()
    assert "special tokens     '<s>' 300" in output
    assert "added tokens       '<a\\n>' 281" in output
    assert "token flags        '<s>' rstrip, '<a\\n>' rstrip" in output
    assert "gaps               280; 282 to 299" in output
    assert "normalizer         NFC" in output
    assert "frame              before 300, behind none" in output
    assert "lossless           no" in output
    found = facts(run, "tokenizer.json")
    assert found["gaps"] == [[280, 280], [282, 299]]
    assert found["added_tokens"] == {"<a\n>": 281}
    assert found["token_flags"] == {"<s>": ["rstrip"], "<a\n>": ["rstrip"]}
    assert found["frame"] == {"before": [300], "behind": []}
    _, ids, _ = run("encode tokenizer.json text --add-special-tokens")
    assert ids == line_of([300, *own.encode(TEXT)])


def test_inspect_shortens_what_is_long(run):
    tokens = [f"--special=<{number}>={number}" for number in range(300, 1400)]
    _, output, _ = run("inspect own.tiktoken --pattern gpt2", *tokens)
    [line] = [line for line in output.decode().splitlines() if line.startswith("special tokens")]
    assert line.startswith("special tokens     1,100: '<300>' 300, '<301>' 301, ")
    assert line.endswith(", '<309>' 309, ...")
    _, output, _ = run("inspect own.tiktoken --json --pattern gpt2", *tokens)
    assert len(json.loads(output)["special_tokens"]) == 1100


# Pieces that do not encode to themselves


def vocabulary(alphabet, merges=(), merge_ids=None, **fields):
    return Vocabulary(
        "bpe",
        tuple(alphabet),
        merges=np.array(merges, np.uint32).reshape(-1, 2),
        merge_ids=None if merge_ids is None else np.array(merge_ids, np.uint32),
        **fields,
    )


def unreached(vocabulary, engine="fast"):
    """The ids of pieces that are never made, and of those that are cut alone."""
    found = describe.facts(vocabulary, engines.get(engine), 0)
    assert all(
        bytes.fromhex(piece["piece"]) == vocabulary.pieces()[piece["id"]]
        for kind in ("never_made", "cut_alone")
        for piece in found[kind]
    )
    return tuple([piece["id"] for piece in found[kind]] for kind in ("never_made", "cut_alone"))


@pytest.mark.parametrize("engine", engines.NAMES)
def test_pieces_that_are_never_made(engine):
    # On `abc` the merge of b and c comes first, so that nothing is left for a merge of ab and c.
    pieces = [b"a", b"b", b"c", b"bc", b"ab", b"abc"]
    merges = [(1, 2), (0, 1), (4, 2)]
    assert unreached(vocabulary(pieces, merges, [3, 4, 5]), engine) == ([5], [])
    assert unreached(vocabulary([*pieces, b"ca"], merges, [3, 4, 5]), engine) == ([5, 6], [])
    # It is found where whole pieces are looked up, or where any pieces merge that join to it.
    lookup = vocabulary(pieces, merges, [3, 4, 5], whole_piece_lookup=True)
    assert unreached(lookup, engine) == ([], [])
    assert unreached(vocabulary(pieces, merge_rule="rank_by_piece"), engine) == ([], [])
    ranked = vocabulary([*pieces[:3], b"abc"], merge_rule="rank_by_piece")
    assert unreached(ranked, engine) == ([3], [])


@pytest.mark.parametrize("engine", engines.NAMES)
def test_pieces_that_are_cut_alone(engine):
    pieces = [*BYTES, b"12", b"123", b"1234", b"a1", b" \xe2", b"\xa9a", "e\u0301".encode()]
    lookup = {"merge_rule": "rank_by_piece", "whole_piece_lookup": True}
    for pattern, cut in (None, []), ("cl100k", [258, 259, 262]), ("o200k", [258, 259]):
        named = None if pattern is None else patterns.get(pattern)
        assert unreached(vocabulary(pieces, pattern=named, **lookup), engine) == ([], cut)
    # No text holds what NFC changes.
    assert unreached(vocabulary(pieces, normalizer="NFC", **lookup), engine) == ([], [262])
    # A space may be put in front of a text, but not of what stands inside of it.
    assert unreached(vocabulary(pieces, prefix_space=True, **lookup), engine) == ([], [])
    # What drops text drops bytes that stand alone.
    dropping = Pattern(None, ("[a-z0-9]+",), keep_gaps=False)
    never, cut = unreached(vocabulary(pieces, pattern=dropping, **lookup), engine)
    assert (never, set(range(128)) - {*cut}) == ([], {*b"abcdefghijklmnopqrstuvwxyz0123456789"})


def test_special_tokens_and_reserved_ids_are_no_pieces():
    tokens = {"special_tokens": {"ab": 300}, "added_tokens": {"c": 301}, "reserved": {"EOS": 302}}
    plain = vocabulary(BYTES, **tokens)
    assert unreached(plain) == ([], [ord("c")])  # as a text it is the added token
    assert describe.facts(plain, engines.get(), 0)["pieces"] == 256


@pytest.mark.parametrize("method", ["byte", "bpe", "char", "word"])
def test_all_pieces_that_were_learned_are_reached(method):
    options = {"minimum_pair_frequency": 1} if method in ("bpe", "word") else {}
    tokenizer = Tokenizer(TEXT, method=method, **options)
    assert unreached(tokenizer._vocabulary) == ([], [])


@given(st.data())
def test_no_text_yields_a_piece_that_is_never_made(data):
    """Whatever the merges, in any order: tried on all short texts."""
    pieces = [b"a", b"b"]
    for _ in range(data.draw(st.integers(0, 6))):
        joined = st.tuples(st.sampled_from(pieces), st.sampled_from(pieces)).map(b"".join)
        piece = data.draw(joined)
        if piece not in pieces and len(piece) <= 5:
            pieces.append(piece)
    pairs = [
        (left, right)
        for left, right in itertools.product(pieces, repeat=2)
        if left + right in pieces
    ]
    listed = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    made = vocabulary(
        pieces,
        [(pieces.index(left), pieces.index(right)) for left, right in listed],
        [pieces.index(left + right) for left, right in listed],
    )
    for each in made, vocabulary(pieces, merge_rule="rank_by_piece"):
        never, _ = unreached(each)
        tokenizer = Tokenizer.from_vocabulary(each)
        texts = (
            "".join(text) for size in range(8) for text in itertools.product("ab", repeat=size)
        )
        yielded = {id for text in texts for id in tokenizer.encode(text)}
        assert yielded == {*range(len(pieces))} - {*never}


def test_the_twelve_of_o200k(run, data):
    found = facts(run, f"{data}/vocab/o200k_base.tiktoken")
    assert found["never_made"] == []
    assert len(found["cut_alone"]) == 12
    assert found["cut_alone"][0] == {"id": 3413, "piece": b" I'".hex()}
    assert found["gaps"] == [[199998, 199998], [200000, 200017]]
    # In a longer text one of them may stand: it is not cut there.
    assert found["cut_alone"][1] == {"id": 3914, "piece": b"\n//".hex()}
    tokenizer = Tokenizer.from_tiktoken(data / "vocab" / "o200k_base.tiktoken")
    assert 3914 in tokenizer.encode("<\n//") and 3914 not in tokenizer.encode("\n//")


# convert


@pytest.mark.parametrize("source", WAYS)
@pytest.mark.parametrize("target", detect.FORMATS)
def test_convert(run, own, source, target):
    code, output, error = run(f"convert {source} new --to {target} {WAYS[source]}")
    if source == "own.tiktoken" and target == "json":
        assert (code, "merge rule 'rank_by_piece'" in error) == (1, True)
        assert not Path("new").exists()
        return
    assert code == 0
    assert (output != b"") == (target == "tiktoken")
    warning = "tokbpe: warning: the file holds no pattern: use it with --pattern gpt2\n"
    assert error == (warning if target == "json" else "")
    told = "--pattern gpt2" if target in ("tiktoken", "json") else ""
    assert facts(run, f"new {told}")["format"] == target
    assert run(f"encode new text {told}") == (0, line_of(own.encode(TEXT)), "")


def test_the_printed_python_rebuilds_the_encoding(run, own):
    pytest.importorskip("tiktoken")
    _, output, _ = run("convert own.tokbpe new.tiktoken --to tiktoken")
    names = {}
    exec(output, names)
    assert names["encoding"].encode(TEXT) == own.encode(TEXT)


def test_hugging_face_reads_what_is_written_for_it(run, own):
    tokenizers = pytest.importorskip("tokenizers")
    assert run("convert own.tiktoken new --to huggingface --pattern gpt2") == (0, b"", "")
    assert tokenizers.Tokenizer.from_file("new").encode(TEXT).ids == own.encode(TEXT)


def test_a_pattern_that_no_option_can_tell(run):
    made = vocabulary(BYTES, pattern=Pattern(None, ("[a-z]+", "[a-f]+")))
    Tokenizer.from_vocabulary(made).save("new")
    code, _, error = run("convert new new.json --to json")
    assert code == 0
    pattern = "Pattern(None, ('[a-z]+', '[a-f]+'), True)"
    assert error == f"tokbpe: warning: the file holds no pattern: no --pattern is as {pattern}\n"


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("tiktoken", "this format cannot hold the reserved ids ['EOS']"),
        ("huggingface", "this format cannot hold the reserved ids ['EOS']"),
        ("gpt2", "this format cannot hold the reserved ids ['EOS']"),
        ("json", "this format cannot hold the special tokens ['<s>']"),
    ],
)
def test_what_the_target_cannot_hold_is_refused_by_name(run, target, problem):
    Tokenizer.from_bytes(special_tokens=["<s>"], reserved=["EOS"]).save("full")
    code, output, error = run(f"convert full new --to {target}")
    assert (code, output) == (1, b"")
    assert error.startswith(f"tokbpe: error: --to {target}: {problem}") and error.count("\n") == 1
    assert not os.path.lexists("new")


def test_a_long_refusal_is_shortened(run):
    Tokenizer.from_bytes(special_tokens=[f"<{number}>" for number in range(1000)]).save("full")
    _, _, error = run("convert full new --to json")
    assert "the special tokens ['<0>', '<1>', " in error and len(error) < 400


@pytest.mark.parametrize("target", detect.FORMATS)
def test_convert_never_replaces_anything(run, monkeypatch, target):
    monkeypatch.setattr(detect, "find", None)  # it is said before the work
    Path("empty").mkdir()
    Path("link").symlink_to("absent")
    for output in "text", "empty", "link":
        code, _, error = run(f"convert own.tokbpe {output} --to {target}")
        assert code == 1
        assert error == f"tokbpe: error: {output}: this path exists, and no file is ever replaced\n"
    assert not any(Path("empty").iterdir()) and not os.path.lexists("absent")
    code, _, error = run(f"convert own.tokbpe absent/new --to {target}")
    assert (code, error) == (1, "tokbpe: error: absent: there is no such folder\n")


def test_two_files_are_both_there_or_none(run, monkeypatch):
    assert run("convert own.tokbpe new/ --to gpt2") == (0, b"", "")
    assert sorted(path.name for path in Path("new").iterdir()) == ["merges.txt", "vocab.json"]
    new_file = files.new_file

    def full(path):
        if os.fsdecode(path).endswith("merges.txt"):
            raise OSError(28, "No space left on device", path)
        return new_file(path)

    monkeypatch.setattr(files, "new_file", full)
    code, _, error = run("convert own.tokbpe other --to gpt2")
    assert (code, error) == (1, "tokbpe: error: other: No space left on device\n")
    assert not Path("other").exists()


def test_a_folder_that_appears_meanwhile_stays(tmp_path):
    target = tmp_path / "new"
    with pytest.raises(FileExistsError) as raised, files.new_folder(target) as folder:
        Path(folder, "file").touch()
        target.mkdir()
    assert raised.value.filename == str(target)
    assert list(tmp_path.iterdir()) == [target] and not any(target.iterdir())


# Wrong use and failures


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("own.tokbpe --name gpt2", "own.tokbpe: --name is not for the format tokbpe"),
        ("own.tokbpe --special a=1", "own.tokbpe: --special is not for the format tokbpe"),
        ("own.tokbpe --merges-file text", "--merges-file is not for the format tokbpe"),
        ("own.tokbpe --pattern none", "own.tokbpe: --pattern is not for the format tokbpe"),
        ("hf --pattern gpt2", "--pattern is not for the format huggingface"),
        ("two --pattern gpt2", "--pattern is not for the format gpt2"),
        ("own.json --special a=1", "own.json: --special is not for the format json"),
        ("own.tiktoken", "own.tiktoken: a rank file holds no pattern and no special tokens: give "),
        ("two/vocab.json", "two/vocab.json: this is GPT-2's vocab: give its merges by --merges-fi"),
        ("own.tiktoken --name gpt5", "invalid choice: 'gpt5'"),
        ("own.tiktoken --pattern cl200k", "pattern 'cl200k' is none of"),
        ("own.tiktoken --pattern (", "pattern '(' is refused at position"),
        ("own.tiktoken --special a", "must be a token and its id, TOKEN=ID, not 'a'"),
        ("own.tiktoken --special =1", "must be a token and its id, TOKEN=ID, not '=1'"),
        ("own.tiktoken --special a=b", "must be a whole number, not 'b'"),
        ("own.tiktoken --special a=4294967296", "must be from 0 to 4294967294"),
        ("own.tiktoken --special a=1 --special a=2", "--special names a token twice"),
    ],
)
def test_wrong_use(run, command, problem):
    code, output, error = run(f"inspect {command}")
    assert (code, output) == (2, b"")
    assert error.startswith("usage: tokbpe inspect ") and problem in error.splitlines()[-1]


@pytest.mark.parametrize("command", ["own.tokbpe new", "own.tokbpe --to tokbpe", "a b --to c"])
def test_wrong_use_of_convert(run, command):
    code, output, error = run(f"convert {command}")
    assert (code, output) == (2, b"") and error.startswith("usage: tokbpe convert ")


@pytest.mark.parametrize(
    ("content", "name", "problem"),
    [
        (b"", "x", "this is no tokenizer that can be read: a file that tokbpe saved; a rank file"),
        (b"{}", "x.json", "this is no tokenizer that can be read: "),
        (b"[1]", "x.json", "this is no tokenizer that can be read: "),
        (b'{"architectures": ["GPT2LMHeadModel"]}', "config.json", "this is no tokenizer"),
        (b'{"vocab', "x.json", "this is no tokenizer"),
        (b'{"vocab": {"a": 0}', "x.json", "Expecting ',' delimiter: line 1 column 19"),
        (b'{"vocab": {"a": 0}, "merges": 1}', "x.json", "merges must be a list"),
        (b'{"version": "1.0"}', "x", "the file lacks the field 'model'"),
        (b'{"version": "1.0", "mod', "x", "Unterminated string"),
        (b"{}", "tokenizer.json", "the file lacks the field 'model'"),
        (b'{"unheard": "of"}', "hf/tokenizer.json", "unheard is 'of': this field is unknown"),
        (b"tokbpe tokenizer 999\n", "x", "the file has version 999, of a newer tokbpe"),
        (b"tokbpe tokenizer 2\nabc", "x", "the file is damaged"),
        (b"tokbpe tokenizer x\n", "x", "this is no tokenizer that tokbpe saved"),
    ],
)
def test_bad_files(run, content, name, problem):
    Path(name).write_bytes(content)
    for command in f"inspect {name}", f"convert {name} new --to tokbpe":
        code, output, error = run(command)
        assert (code, output) == (1, b"")
        assert error.startswith(f"tokbpe: error: {name}: {problem}") and error.count("\n") == 1
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (
            "absent",
            "absent: No such file or directory, and it is no name of tiktoken's: gpt2, r50k",
        ),
        ("absent/gpt2", "absent/gpt2: No such file or directory"),
        ("empty", "empty: there is no tokenizer in this folder that can be read: a file that tokb"),
        (
            "half",
            "half: a folder with either vocab.json and merges.txt or encoder.json and vocab.b",
        ),
        ("hf --merges-file text", "hf: Is a directory"),
        ("hf --name gpt2", "hf/encoder.json: No such file or directory"),
        ("two/vocab.json --merges-file absent", "absent: No such file or directory"),
        ("two/vocab.json --merges-file text", "text: line 1 must be two pieces"),
        ("text --merges-file two/merges.txt", "text: Expecting value: line 1 column 1"),
        ("bad.tiktoken --pattern gpt2", "bad.tiktoken: line 1"),
        ("bad --name r50k_base", "bad: this is not the file r50k_base.tiktoken of tiktoken"),
    ],
)
@posix
def test_failures(run, command, problem):
    Path("empty").mkdir()
    Path("half").mkdir()
    shutil.copy("two/vocab.json", "half")
    for name in "bad", "bad.tiktoken":
        Path(name).write_bytes(b"?== 0\n")
    code, output, error = run(f"inspect {command}")
    assert (code, output) == (1, b"")
    assert error.startswith(f"tokbpe: error: {problem}") and error.count("\n") == 1


# Help


def test_the_examples_of_help_work(run):
    Path("texts").mkdir()
    for name in "book.txt", "notes.txt", "texts/one", "english.txt", "german.txt":
        Path(name).write_text(TEXT * 20, encoding="utf-8")
    for name, help in usage.HELP.items():
        if name == "demo":  # it has a test of its own
            continue
        if name == "decode":
            Path("book.txt").rename("before")
        if name == "shard":  # which wants the reserved id EOS
            Path("my.tokbpe").rename("before.tokbpe")
            assert run("train book.txt -o my.tokbpe --reserved EOS")[0] == 0
        if name == "convert":
            Path("before.tokbpe").replace("my.tokbpe")
        code, _, _ = run(help.example.removeprefix("tokbpe "))
        assert code == 0
    assert Path("book.txt").read_bytes() == Path("before").read_bytes()
    assert facts(run, "my.tiktoken --pattern cl100k")["format"] == "tiktoken"


def test_every_format_has_its_row():
    assert usage.TOLD.keys() == {*detect.FORMATS}
