// What both tabs draw: elements, tokens, tables. Text gets into the page as text, never as HTML.

const COLORS = 8; // of tokens, as the style sheet has them
const MOST_TOKENS = 1500; // drawn of a text
const MOST_ROWS = 200; // of a table

const byId = (id) => document.getElementById(id);

// What a screen reader is to say of what has changed: in a while, and of several changes the last
// alone, so that it does not talk while somebody types or holds a key down.
const PAUSES = { typed: 1000, stepped: 300 }; // in milliseconds
let saying = 0;

function say(pause, ...texts) {
  clearTimeout(saying);
  saying = setTimeout(() => {
    byId("said").textContent = texts.filter(Boolean).join(" ");
  }, pause);
}

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function option(value, text) {
  return element("option", { value }, text);
}

function number(value) {
  return value.toLocaleString("en-US");
}

function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

// Whole UTF-8 characters, and single bytes that belong to none.
const UTF8_OR_BYTE = new RegExp(
  [
    "[\\x00-\\x7f]|[\\xc2-\\xdf][\\x80-\\xbf]",
    "\\xe0[\\xa0-\\xbf][\\x80-\\xbf]|\\xed[\\x80-\\x9f][\\x80-\\xbf]",
    "[\\xe1-\\xec\\xee\\xef][\\x80-\\xbf]{2}",
    "\\xf0[\\x90-\\xbf][\\x80-\\xbf]{2}|\\xf4[\\x80-\\x8f][\\x80-\\xbf]{2}",
    "[\\xf1-\\xf3][\\x80-\\xbf]{3}",
    "[^]",
  ].join("|"),
  "g",
);
const VISIBLE = { " ": "␣", "\n": "⏎", "\t": "⇥" };
// Control and format characters, white space, and letters and signs that are drawn as nothing.
const UNSEEN = /[\p{C}\p{Z}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]/u;

function hexadecimal(bytes) {
  return Array.from(bytes, (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join(" ");
}

function visibleCharacter(bytes) {
  if (bytes.length === 1 && bytes > "\x7f") return `<${hexadecimal(bytes)}>`;
  const values = Uint8Array.from(bytes, (byte) => byte.charCodeAt(0));
  const char = new TextDecoder("utf-8", { ignoreBOM: true }).decode(values);
  if (char in VISIBLE) return VISIBLE[char];
  if (!UNSEEN.test(char)) return char;
  return `<U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
}

// A piece so that each of its bytes is seen; what is only a part of a character is hexadecimal.
function visible(bytes) {
  let text = "";
  let seen = false; // whether the last character stands there as it is
  for (const found of bytes.match(UTF8_OR_BYTE) ?? []) {
    const char = visibleCharacter(found);
    // A combining mark would sit on a sign, or on what stands before the piece.
    text += !seen && /^\p{M}/u.test(char) ? `◌${char}` : char;
    seen = bytesOf(char) === found;
  }
  return text;
}

// The string of an id as nodes, the end of a word set apart.
function pieceNodes(id, model) {
  const shown = visible(withoutMarker(id, model));
  return model.ends[id] ? [shown, element("span", { class: "marker" }, MARKER)] : [shown];
}

function withoutMarker(id, { strings, ends }) {
  return ends[id] ? strings[id].slice(0, -MARKER.length) : strings[id];
}

// Symbols are plain, what is merged has a color by its id.
function tokenClass(id, model) {
  const { unit, unknown } = model;
  const bytes = withoutMarker(id, model);
  const size = unit === "byte" ? bytes.length : bytes.match(UTF8_OR_BYTE).length;
  return size === 1 || id === unknown ? "token" : `token color-${id % COLORS}`;
}

function tokenNode(id, model, mark = "", withId = true) {
  const node = element(
    "span",
    {
      class: `${tokenClass(id, model)} ${mark}`.trim(),
      title: `id ${id}, bytes ${hexadecimal(withoutMarker(id, model))}`,
    },
    element("span", { class: "piece" }, ...pieceNodes(id, model)),
  );
  if (withId) node.append(" ", element("span", { class: "id" }, String(id)));
  return node;
}

// A merge in a line: left + right, and what stands behind it there.
function pairNode({ left, right }, model, behind = "") {
  const halves = [left, right].map((id) => tokenNode(id, model, "", false));
  return element("span", { class: "pair" }, halves[0], " + ", halves[1], behind);
}

function more(count, shown, what) {
  return count > shown ? `${number(count - shown)} more ${what} are not shown.` : "";
}

// Rows are arrays of cells; a cell is text, a node or a list of these.
function fillTable(table, rows, rowClass = () => "") {
  const body = table.tBodies[0] ?? table.createTBody();
  body.replaceChildren(
    ...rows.slice(0, MOST_ROWS).map((cells, index) =>
      element(
        "tr",
        rowClass(index) ? { class: rowClass(index) } : {},
        ...cells.map((cell) => element("td", {}, ...[cell].flat())),
      ),
    ),
  );
  const rest = byId(`${table.id}-rest`);
  if (rest) rest.textContent = more(rows.length, MOST_ROWS, "rows");
}

function ratio(bytes, tokens) {
  return tokens === 0 ? "–" : (bytes / tokens).toFixed(2);
}
