// Byte-pair encoding as the package has it, under the names of its reference. Bytes stand in
// strings, a character for each: so they are keys, and compare as bytes do.

const MARKER = "</w>"; // stands behind the last character of a word
const UNKNOWN = "<UNK>";
const BYTES = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte));
const ID_LIMIT = 2 ** 26; // so that a pair of ids is one exact number

// Text and bytes

// A lone surrogate, which has no UTF-8, becomes U+FFFD.
function wellFormed(text) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(text));
}

function bytesOf(text) {
  return Array.from(new TextEncoder().encode(text), (byte) => BYTES[byte]).join("");
}

// Patterns

// The package's classes of characters, not those of the browser's Unicode: a range of code points
// for what stands between the brackets of a set.
function rangesOf(name) {
  return DATA.classes[name]
    .split(" ")
    .map((range) => range.split("-").map((code) => `\\u{${code}}`).join("-"))
    .join("");
}

// A regular expression with \p{...}, \s and \S spelled out.
function withClasses(source) {
  let inSet = false;
  return source.replace(/\\p\{(\w+)\}|\\.|[[\]]/gu, (found, name) => {
    if (found === "[" || found === "]") inSet = found === "[";
    if (found === "\\S") return `[^${rangesOf("White_Space")}]`;
    if (name === undefined && found !== "\\s") return found;
    const ranges = rangesOf(name ?? "White_Space");
    return inSet ? ranges : `[${ranges}]`;
  });
}

const compiled = new Map();

// The pattern of a name; null, which cuts nothing, for null.
function patternOf(name) {
  if (name === null) return null;
  if (!compiled.has(name)) {
    const { sources, keep_gaps: keepGaps } = DATA.patterns[name];
    const regexes = sources.map((source) => new RegExp(withClasses(source), "gu"));
    compiled.set(name, { regexes, keepGaps });
  }
  return compiled.get(name);
}

function cut(text, regex, keepGaps) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(regex)) {
    if (keepGaps) parts.push(text.slice(end, match.index));
    parts.push(match[0]);
    end = match.index + match[0].length;
  }
  if (keepGaps) parts.push(text.slice(end));
  return parts.filter((part) => part !== "");
}

function split(text, pattern) {
  let parts = text === "" ? [] : [text];
  if (pattern === null) return parts;
  for (const regex of pattern.regexes) {
    parts = parts.flatMap((part) => cut(part, regex, pattern.keepGaps));
  }
  return parts;
}

// Symbols

function symbolsOf(piece, unit) {
  if (unit === "byte") return [...bytesOf(piece)];
  const symbols = Array.from(piece, bytesOf);
  if (unit === "word") symbols.push(symbols.pop() + MARKER);
  return symbols;
}

// Where symbols are characters: all that occur, sorted; of words both forms of each.
function alphabetOf(pieces, unit) {
  const characters = [...new Set(pieces.flatMap((piece) => Array.from(piece, bytesOf)))].sort();
  const forms = (char) => (unit === "word" ? [char, char + MARKER] : [char]);
  return [UNKNOWN, ...characters.flatMap(forms)];
}

// Of UNKNOWN, which is no symbol, only the id is of use.
function idsOfSymbols(alphabet, unit) {
  const ids = new Map(alphabet.map((symbol, id) => [symbol, id]));
  if (unit !== "byte") ids.delete(UNKNOWN);
  return ids;
}

// Training

function countPieces(text, pattern) {
  const counts = new Map();
  for (const piece of split(text, pattern)) counts.set(piece, (counts.get(piece) ?? 0) + 1);
  return counts;
}

function pairKey(left, right) {
  return left * ID_LIMIT + right;
}

// Neighbors with their counts, in the order in which they are first met.
function countPairs(rows, weights) {
  const pairs = new Map();
  rows.forEach((row, number) => {
    for (let place = 1; place < row.length; place++) {
      const [left, right] = [row[place - 1], row[place]];
      const key = pairKey(left, right);
      if (!pairs.has(key)) pairs.set(key, { left, right, count: 0 });
      pairs.get(key).count += weights[number];
    }
  });
  return [...pairs.values()];
}

function compareStrings(one, other) {
  return one < other ? -1 : Number(one > other);
}

// Which of two pairs of equal counts comes first.
const TIE_RULES = {
  first: () => 0, // they stand in the order in which they are met
  smallest: (one, other) => one.left - other.left || one.right - other.right,
  greatest: (one, other, strings) =>
    compareStrings(strings[other.left], strings[one.left]) ||
    compareStrings(strings[other.right], strings[one.right]) ||
    other.left - one.left ||
    other.right - one.right,
};

function pairOrder(strings, rule) {
  return (one, other) => other.count - one.count || TIE_RULES[rule](one, other, strings);
}

function choosePair(pairs, strings, rule) {
  const order = pairOrder(strings, rule);
  return pairs.reduce((best, pair) => (order(pair, best) < 0 ? pair : best));
}

// From left to right and without overlap.
function mergePair(row, { left, right }, id) {
  const merged = [];
  for (const symbol of row) {
    if (symbol === right && merged.at(-1) === left) merged[merged.length - 1] = id;
    else merged.push(symbol);
  }
  return merged;
}

// What is learned from: the distinct pieces as rows of ids, each with its weight.
function prepareTraining(text, { unit, pattern }) {
  const counts = countPieces(text, patternOf(pattern));
  const pieces = [...counts.keys()];
  const alphabet = unit === "byte" ? BYTES : alphabetOf(pieces, unit);
  const ids = idsOfSymbols(alphabet, unit);
  return {
    unit,
    pattern,
    alphabet,
    pieces,
    weights: [...counts.values()],
    rows: pieces.map((piece) => symbolsOf(piece, unit).map((symbol) => ids.get(symbol))),
  };
}

// The merges, in the order learned: { left, right, id, count }; the string of each id, and whether
// it ends a word: a text may hold what looks like the marker.
function train({ rows, weights, alphabet }, { rule, minimum, most }) {
  const strings = [...alphabet];
  const ends = alphabet.map((symbol) => symbol.endsWith(MARKER));
  const merges = [];
  while (merges.length < most) {
    const pairs = countPairs(rows, weights);
    if (pairs.length === 0) break;
    const pair = choosePair(pairs, strings, rule);
    if (pair.count < minimum) break;
    const id = strings.length;
    strings.push(strings[pair.left] + strings[pair.right]);
    ends.push(ends[pair.right]);
    rows = rows.map((row) => mergePair(row, pair, id));
    merges.push({ ...pair, id });
  }
  return { merges, strings, ends };
}

// Tokenizers: `ids` gives symbols theirs, `strings` ids their bytes, `ends` tells whether an id ends
// a word, `whole` gives those pieces their ids that are taken at once; `mergeOf` tells the rank
// and the id of two neighbors that merge.

function tokenizerOfTraining(name, training, { merges, strings, ends }) {
  const ranked = new Map(
    merges.map(({ left, right, id }, rank) => [pairKey(left, right), { rank, id }]),
  );
  return {
    name,
    unit: training.unit,
    pattern: training.pattern,
    size: training.alphabet.length + merges.length,
    strings,
    ends,
    ids: idsOfSymbols(training.alphabet, training.unit),
    unknown: training.unit === "byte" ? null : 0,
    whole: new Map(),
    added: {},
    mergeOf: (left, right) => ranked.get(pairKey(left, right)),
  };
}

const BYTE_OF_PRINTABLE = new Map(Array.from(DATA.printable, (char, byte) => [char, BYTES[byte]]));

function fromPrintable(text) {
  return Array.from(text, (char) => BYTE_OF_PRINTABLE.get(char)).join("");
}

// An embedded vocabulary: `pieces` by id, in GPT-2's printable characters and with nothing for
// an id that is none; then, from `first` on, what `merges` make, two ids each.
function tokenizerOfEmbedded(embedded) {
  const strings = embedded.pieces.split(" ").map(fromPrintable);
  // A space marks the end of a word there.
  const ends = strings.map((string) => embedded.unit === "word" && string.endsWith(" "));
  strings.forEach((string, id) => {
    if (ends[id]) strings[id] = string.slice(0, -1) + MARKER;
  });
  const ids = new Map();
  strings.forEach((string, id) => {
    if (string !== "") ids.set(string, id);
  });

  const merges = new Map();
  for (let at = 0; at < embedded.merges.length; at += 2) {
    const [left, right] = [embedded.merges[at], embedded.merges[at + 1]];
    const rank = at / 2;
    const id = embedded.merge_ids?.[rank] ?? embedded.first + rank;
    strings[id] = strings[left] + strings[right];
    ends[id] = ends[right];
    merges.set(pairKey(left, right), { rank, id });
  }
  const whole = new Map(embedded.whole_piece_lookup ? ids : []);
  if (embedded.whole_piece_lookup) {
    for (const { id } of merges.values()) if (!whole.has(strings[id])) whole.set(strings[id], id);
  }
  for (const [spelling, id] of Object.entries(embedded.added)) strings[id] = bytesOf(spelling);
  if (embedded.unknown !== null) strings[embedded.unknown] = UNKNOWN;

  const byPiece = (left, right) => {
    const id = ids.get(strings[left] + strings[right]);
    return id === undefined ? undefined : { rank: id, id };
  };
  return {
    name: embedded.name,
    unit: embedded.unit,
    pattern: embedded.pattern,
    size: embedded.size,
    strings,
    ends,
    ids,
    unknown: embedded.unknown,
    whole,
    added: embedded.added,
    mergeOf:
      embedded.merge_rule === "rank_by_piece"
        ? byPiece
        : (left, right) => merges.get(pairKey(left, right)),
  };
}

// Encoding

const BLOCK = 256; // places of which the lowest rank is kept, so that not all are looked at

// The place of the lowest rank, the leftmost of equals; -1 if there is none.
function lowestRank(found, places) {
  return places.reduce((lowest, place) => {
    if (place === -1 || !found[place]) return lowest;
    return lowest === -1 || found[place].rank < found[lowest].rank ? place : lowest;
  }, -1);
}

// Merges the pair of lowest rank, the leftmost of equals, again and again. Each step tells which
// symbol the left one begins with, the two ids and what they became.
function mergePiece(symbols, mergeOf) {
  const ids = [...symbols]; // an id stands where its first symbol stood
  const places = [...ids.keys()];
  const before = places.map((place) => place - 1);
  const behind = places.map((place) => place + 1);
  const mergeAt = (place) =>
    behind[place] < ids.length ? mergeOf(ids[place], ids[behind[place]]) : undefined;
  const found = places.map(mergeAt);
  const blocks = [];
  const lookAt = (block) => {
    const start = block * BLOCK;
    blocks[block] = lowestRank(found, places.slice(start, start + BLOCK));
  };
  for (let block = 0; block * BLOCK < ids.length; block++) lookAt(block);
  const set = (place, merge) => {
    found[place] = merge;
    lookAt(Math.floor(place / BLOCK));
  };

  const steps = [];
  for (;;) {
    const place = lowestRank(found, blocks);
    if (place === -1) break;
    const { rank, id } = found[place];
    const gone = behind[place];
    steps.push({ place, left: ids[place], right: ids[gone], rank, id });
    ids[place] = id;
    ids[gone] = undefined;
    behind[place] = behind[gone];
    if (behind[place] < ids.length) before[behind[place]] = place;
    set(gone, undefined);
    set(place, mergeAt(place));
    if (place > 0) set(before[place], mergeAt(before[place]));
  }
  return { ids: ids.filter((id) => id !== undefined), steps };
}

function symbolId(symbol, { ids, unknown }) {
  const id = ids.get(symbol) ?? unknown;
  if (id === null) {
    const byte = symbol.charCodeAt(0).toString(16).padStart(2, "0");
    throw new Error(`the byte 0x${byte} has no id in it`);
  }
  return id;
}

function encodePiece(piece, tokenizer) {
  const id = tokenizer.whole.get(bytesOf(piece));
  if (id !== undefined) return { piece, kind: "whole", symbols: [id], ids: [id], steps: [] };
  const symbols = symbolsOf(piece, tokenizer.unit).map((symbol) => symbolId(symbol, tokenizer));
  return { piece, kind: "merged", symbols, ...mergePiece(symbols, tokenizer.mergeOf) };
}

// Cuts out the tokens that always match: the longest at the leftmost place.
function cutAdded(text, added) {
  const spellings = Object.keys(added).sort((one, other) => other.length - one.length);
  if (spellings.length === 0) return [text];
  const escaped = spellings.map((spelling) => spelling.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  return text.split(new RegExp(`(${escaped.join("|")})`, "u"));
}

// The pieces of a text, in order, each with its ids and the steps to them.
function encode(text, tokenizer) {
  const pattern = patternOf(tokenizer.pattern);
  return cutAdded(wellFormed(text), tokenizer.added).flatMap((part, number) => {
    if (number % 2 === 0) {
      return split(part, pattern).map((piece) => encodePiece(piece, tokenizer));
    }
    const id = tokenizer.added[part];
    return [{ piece: part, kind: "added", symbols: [id], ids: [id], steps: [] }];
  });
}
