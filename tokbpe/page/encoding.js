// The second tab: how tokenizers encode a text, side by side, and one of them merge by merge.

const MOST_COMPARED = 3;
const MOST_PIECES = 300; // to choose from
const MOST_STEP_TOKENS = 60; // drawn of a piece
const SAMPLE = "lowest newest widest slower";
const LONG_SAMPLE =
  "The slowest newcomers. Grüße aus 東京, привет 🐈!\nfor i in range(1024): print(i)";

// `candidates` make their tokenizers when they are first needed, `results` are of those chosen;
// `subject` is the name of the one that is looked at, `piece` the number of a piece in the text.
const encoding = { candidates: [], chosen: [], results: [], subject: "", piece: 0 };

// Candidates

function lazily(make) {
  let made = null;
  return () => (made ??= make());
}

function embeddedCandidate(embedded) {
  return { name: embedded.name, tokenizer: lazily(() => tokenizerOfEmbedded(embedded)) };
}

const FROM_TRAINING = "what the training tab learned";

function keptName() {
  const { unit, pattern, rule, merges } = training.learned;
  const cuts = pattern === null ? "uncut" : `cut by ${pattern}`;
  const symbols = unit === "byte" ? "bytes" : "characters";
  return `${symbols}, ${cuts}, ${rule}, ${plural(merges.length, "merge")}`;
}

// A name that no other has: what was learned from another text is kept under the next number.
function freeName(name) {
  const taken = new Set(encoding.candidates.map((candidate) => candidate.name));
  let number = 1;
  while (taken.has(numbered(name, number))) number++;
  return numbered(name, number);
}

function numbered(name, number) {
  return number === 1 ? name : `${name} (${number})`;
}

function keepTrained() {
  const source = JSON.stringify([keptName(), training.text]);
  const known = encoding.candidates.find((candidate) => candidate.source === source);
  const name = known?.name ?? freeName(keptName());
  if (!known) {
    const kept = trainedTokenizer(name);
    encoding.candidates.push({ name, source, tokenizer: () => kept });
    if (encoding.chosen.length < MOST_COMPARED) encoding.chosen.push(name);
    showCandidates();
  }
  byId("keep-note").textContent = known
    ? `The encoding tab has it already: “${name}”.`
    : `The encoding tab now has “${name}”.`;
}

function showCandidates() {
  const full = encoding.chosen.length === MOST_COMPARED;
  byId("candidates").replaceChildren(
    ...encoding.candidates.map(({ name }) => {
      const input = element("input", { type: "checkbox", value: name });
      input.checked = encoding.chosen.includes(name);
      input.disabled = full && !input.checked;
      return element("label", { class: "choice" }, input, " ", name);
    }),
  );
}

function choose(event) {
  const name = event.target.value;
  const others = encoding.chosen.filter((other) => other !== name);
  const chosen = event.target.checked ? [...others, name] : others;
  encoding.chosen = encoding.candidates
    .map((candidate) => candidate.name)
    .filter((candidate) => chosen.includes(candidate));
  // The boxes stay the same elements, so that the focus stays.
  const full = encoding.chosen.length === MOST_COMPARED;
  for (const box of byId("candidates").querySelectorAll("input")) {
    box.disabled = full && !box.checked;
  }
  encodeAgain();
}

// Encoding

function encodeAgain() {
  encodeText();
  const told = encoding.results.map(
    ({ name, ids, error }) => `${name}: ${error ?? plural(ids.length, "token")}.`,
  );
  say(PAUSES.typed, byId("encoding-note").textContent, ...told);
}

// What a tokenizer makes of a text, or the error that says why it cannot.
function resultOf({ name, tokenizer }, text) {
  const model = tokenizer();
  try {
    const pieces = encode(text, model);
    return { name, model, pieces, ids: pieces.flatMap((piece) => piece.ids) };
  } catch (error) {
    return { name, model, pieces: [], ids: [], error: error.message };
  }
}

function encodeText() {
  tellOfLength("encoding-note", byId("encoding-text").value);
  const text = usedText(byId("encoding-text").value);
  const chosen = encoding.candidates.filter(({ name }) => encoding.chosen.includes(name));
  encoding.results = chosen.map((candidate) => resultOf(candidate, text));
  const names = encoding.results.map(({ name }) => name);
  if (!names.includes(encoding.subject)) encoding.subject = names[0] ?? "";
  byId("subject").replaceChildren(...names.map((name) => option(name, name)));
  byId("subject").value = encoding.subject;
  showComparison(bytesOf(text).length);
  showSubject();
}

// Several tokenizers

function showComparison(bytes) {
  fillTable(
    byId("comparison"),
    encoding.results.map(({ name, model, ids, error }) => [
      name,
      number(model.size),
      error ? "–" : number(ids.length),
      error ? "–" : ratio(bytes, ids.length),
    ]),
  );
  byId("comparison-count").textContent = plural(bytes, "byte");
  byId("encoded").replaceChildren(...encoding.results.map(encodedNode));
}

function encodedNode({ name, model, ids, error }) {
  const tokens = ids.slice(0, MOST_TOKENS).map((id) => tokenNode(id, model));
  const rest = more(ids.length, MOST_TOKENS, "tokens");
  return element(
    "section",
    { "aria-label": `Tokens of ${name}` },
    element("h3", {}, name),
    element("div", { class: "tokens" }, ...tokens),
    element("p", { class: "note" }, error ? `It cannot encode this: ${error}.` : rest),
  );
}

// One tokenizer, merge by merge

function subjectResult() {
  return encoding.results.find(({ name }) => name === encoding.subject);
}

function showSubject() {
  const result = subjectResult();
  const pieces = result?.pieces.slice(0, MOST_PIECES) ?? [];
  byId("piece-buttons").replaceChildren(
    ...pieces.map(({ piece }, index) =>
      element(
        "button",
        { type: "button", class: "piece-button", "data-piece": index, tabindex: -1 },
        visible(bytesOf(piece)),
      ),
    ),
  );
  byId("piece-rest").textContent = more(result?.pieces.length ?? 0, MOST_PIECES, "pieces");
  showTokenTable(result);
  // A piece of which there is something to see.
  showPiece(Math.max(pieces.findIndex(({ steps }) => steps.length > 0), 0));
}

// One button is in the order of the Tab key; arrows go from one to the next.
function showPiece(index) {
  encoding.piece = index;
  for (const button of byId("piece-buttons").children) {
    const isChosen = Number(button.dataset.piece) === index;
    button.setAttribute("aria-pressed", isChosen);
    button.tabIndex = isChosen ? 0 : -1;
  }
  const result = subjectResult();
  const piece = result?.pieces[index];
  byId("piece-words").textContent = piece ? pieceWords(piece) : "There is no piece to look at.";
  fillTable(byId("steps"), piece ? stepRows(piece, result.model) : []);
  byId("steps-rest").textContent = more(piece ? piece.steps.length + 1 : 0, MOST_ROWS, "rows");
}

function pieceWords({ kind, symbols, ids, steps }) {
  if (kind === "whole") {
    return `The whole piece is in the vocabulary: it is taken at once, id ${ids[0]}.`;
  }
  if (kind === "added") {
    return `A token that always matches, whatever stands around it: id ${ids[0]}.`;
  }
  const merges = `${plural(symbols.length, "symbol")} and ${plural(steps.length, "merge")}`;
  const tokens = plural(ids.length, "token");
  return `${merges} give ${tokens}. The merge that was learned earliest comes first.`;
}

function stepRows({ symbols, steps }, model) {
  const row = [...symbols.entries()]; // the place of the first symbol of each token, and its id
  const tokens = (made) => {
    // Of many tokens those around the one that was made.
    const first = Math.max(0, Math.min(made - MOST_STEP_TOKENS / 2, row.length - MOST_STEP_TOKENS));
    const drawn = row
      .slice(first, first + MOST_STEP_TOKENS)
      .map(([, id], index) => tokenNode(id, model, first + index === made ? "new" : ""));
    const left = first > 0 ? "…" : "";
    const right = first + MOST_STEP_TOKENS < row.length ? "…" : "";
    return [element("span", { class: "tokens" }, left, ...drawn, right)];
  };
  const rows = [["0", tokens(-1), "", ""]];
  for (const [index, step] of steps.slice(0, MOST_ROWS - 1).entries()) {
    const made = row.findIndex(([place]) => place === step.place);
    row.splice(made, 2, [step.place, step.id]);
    rows.push([number(index + 1), tokens(made), pairNode(step, model), number(step.rank)]);
  }
  return rows;
}

function showTokenTable(result) {
  const counts = new Map();
  for (const id of result?.ids ?? []) counts.set(id, (counts.get(id) ?? 0) + 1);
  const rows = [...counts].map(([id, count]) => {
    const bytes = withoutMarker(id, result.model);
    return [String(id), tokenNode(id, result.model, "", false), hexadecimal(bytes), number(count)];
  });
  fillTable(byId("tokens"), rows);
  byId("tokens-count").textContent = plural(rows.length, "distinct token");
}

// What a reader does

const PIECE_KEYS = {
  ArrowLeft: (at) => at - 1,
  ArrowRight: (at) => at + 1,
  Home: () => 0,
  End: (_, last) => last,
};

function choosePiece(index) {
  showPiece(index);
  say(PAUSES.stepped, byId("piece-words").textContent);
}

function pieceByKey(event) {
  if (!(event.key in PIECE_KEYS)) return;
  event.preventDefault();
  const buttons = byId("piece-buttons").children;
  const last = buttons.length - 1;
  const wanted = PIECE_KEYS[event.key](encoding.piece, last);
  choosePiece(Math.min(Math.max(wanted, 0), last));
  buttons[encoding.piece].focus();
}

function startEncoding() {
  encoding.candidates = [
    ...DATA.tokenizers.map(embeddedCandidate),
    { name: FROM_TRAINING, tokenizer: () => trainedTokenizer(FROM_TRAINING) },
  ];
  const embedded = DATA.tokenizers.map(({ name }) => name);
  encoding.chosen = embedded.length > 0 ? embedded : [FROM_TRAINING];
  byId("encoding-text").value = DATA.tokenizers.length > 0 ? LONG_SAMPLE : SAMPLE;
  byId("encoding-text").addEventListener("input", encodeAgain);
  byId("candidates").addEventListener("change", choose);
  byId("keep").addEventListener("click", keepTrained);
  byId("subject").addEventListener("change", () => {
    encoding.subject = byId("subject").value;
    showSubject();
    say(PAUSES.stepped, byId("piece-words").textContent);
  });
  byId("piece-buttons").addEventListener("click", (event) => {
    const button = event.target.closest("[data-piece]");
    if (button) choosePiece(Number(button.dataset.piece));
  });
  byId("piece-buttons").addEventListener("keydown", pieceByKey);
  showCandidates();
}
