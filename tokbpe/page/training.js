// The first tab: a text is learned from, and each step of that can be looked at.

const EXAMPLES = {
  "low, lower, newest, widest": {
    text: ["low ".repeat(5), "lower ".repeat(2), "newest ".repeat(6), "widest ".repeat(3)]
      .join("")
      .trim(),
    unit: "word",
    rule: "first",
    minimum: 1,
  },
  "a run: aaa": {
    text: "aaa",
    unit: "character",
    pattern: "none",
    rule: "smallest",
    minimum: 2,
  },
  "ties: three rules, three answers": {
    text: "kite kite zebra zebra apple apple",
    unit: "word",
    rule: "first",
    minimum: 2,
  },
  "bytes of several languages": {
    text: "Grüße, Bücher, Füße.\n你好你好，世界世界。\nпривет, привет\n🐈🐈 🐈🐕",
    unit: "byte",
    pattern: "gpt2",
    rule: "smallest",
    minimum: 2,
  },
};

const OWN = "own";
const OWN_TEXT = {
  text: DATA.text ?? "",
  unit: "byte",
  pattern: "gpt2",
  rule: "smallest",
  minimum: 2,
};

const RULE_WORDS = {
  first: "the pair that is met first when the pieces, as they now stand, are read in order",
  smallest: "the pair with the smaller ids",
  greatest: "the pair whose bytes are greater, those of the left token first",
};

const MOST_MERGES = 500;
const MOST_TIED = 6; // of pairs told in words

// `learned` is what is looked at, `rows` are its pieces after `step` merges; `given` is the text of an
// example, in whose place the field `held` what a field can: there is no carriage return in it.
const training = { text: "", given: "", held: "", learned: null, step: 0, rows: [] };

// Choices

function wordsAreCut() {
  return byId("pattern").value === "words";
}

function wholeNumber(input, least, most) {
  return Math.min(Math.max(Math.trunc(Number(input.value)) || least, least), most);
}

function trainingOptions() {
  return {
    unit: wordsAreCut() ? "word" : byId("unit").value,
    pattern: byId("pattern").value === "none" ? null : byId("pattern").value,
    rule: byId("rule").value,
    minimum: wholeNumber(byId("minimum"), 1, Number.MAX_SAFE_INTEGER),
    most: wholeNumber(byId("most"), 0, MOST_MERGES),
  };
}

// An end of a word is marked on characters, never on bytes.
function agreeUnitAndPattern(changed) {
  if (!wordsAreCut() || byId("unit").value === "character") return;
  if (changed === "unit") byId("pattern").value = "gpt2";
  else byId("unit").value = "character";
}

function setOptions({ text, unit, pattern, rule, minimum }) {
  byId("training-text").value = text;
  training.given = text;
  training.held = byId("training-text").value;
  byId("unit").value = unit === "word" ? "character" : unit;
  byId("pattern").value = unit === "word" ? "words" : (pattern ?? "none");
  byId("rule").value = rule;
  byId("minimum").value = minimum;
}

// Learning

// What is used of a text: all, or as much as a page can do without being slow.
function usedText(text) {
  const characters = Array.from(wellFormed(text));
  return characters.slice(0, DATA.longest_text).join("");
}

function tellOfLength(id, text) {
  const size = Array.from(text).length;
  byId(id).textContent =
    size > DATA.longest_text
      ? `Only the first ${number(DATA.longest_text)} of ${number(size)} characters are used.`
      : "";
}

function learn() {
  const options = trainingOptions();
  const { value } = byId("training-text");
  training.text = usedText(value === training.held ? training.given : value);
  tellOfLength("training-note", byId("training-text").value);
  const prepared = prepareTraining(training.text, options);
  const learned = train(prepared, options);
  training.learned = {
    ...prepared,
    ...learned,
    ...options,
    unknown: prepared.unit === "byte" ? null : 0,
  };
  training.step = 0;
  training.rows = prepared.rows;
  const slider = byId("step");
  slider.max = learned.merges.length;
  byId("keep-note").textContent = "";
  byId("learned-count").textContent = number(learned.merges.length);
  showStep(0);
}

// Replays merges: from where we are, or from the start if that is behind.
function rowsAt(step) {
  const { merges, rows: start } = training.learned;
  const ahead = step >= training.step;
  const left = merges.slice(ahead ? training.step : 0, step);
  const from = ahead ? training.rows : start;
  return left.reduce((rows, merge) => rows.map((row) => mergePair(row, merge, merge.id)), from);
}

function showStep(wanted) {
  const { merges, weights, strings, rule } = training.learned;
  const step = Math.min(Math.max(wanted, 0), merges.length);
  training.rows = rowsAt(step);
  training.step = step;
  const pairs = countPairs(training.rows, weights).sort(pairOrder(strings, rule));
  const next = merges[step];
  showStepper(step);
  showExplanation(step, pairs, next);
  showPairs(pairs, next);
  showPieces(next);
  showText(next);
  showMerges(step);
}

// What is shown of a step

function showStepper(step) {
  const last = training.learned.merges.length;
  const slider = byId("step");
  slider.value = step;
  slider.setAttribute("aria-valuetext", `${step} of ${plural(last, "merge")}`);
  byId("step-count").textContent = number(step);
  // Disabling the button that has the focus would lose it.
  for (const id of ["to-start", "back"]) byId(id).setAttribute("aria-disabled", step === 0);
  for (const id of ["on", "to-end"]) byId(id).setAttribute("aria-disabled", step === last);
}

function showExplanation(step, pairs, next) {
  const { merges } = training.learned;
  const lines = [];
  if (step > 0) {
    const merge = merges[step - 1];
    lines.push([
      `Merge ${step}: `,
      pairNode(merge, training.learned),
      " became ",
      tokenNode(merge.id, training.learned, "", false),
      `, id ${merge.id}.`,
    ]);
  }
  lines.push(next ? nextWords(pairs, next) : endWords(pairs));
  byId("explanation").replaceChildren(...lines.map((line) => element("p", {}, ...line)));
}

function nextWords(pairs, next) {
  const times = plural(next.count, "time");
  const { rule } = training.learned;
  const tied = pairs.filter((pair) => pair.count === next.count);
  if (tied.length === 1) {
    const winner = pairNode(next, training.learned);
    const words = ` occurs ${times}, more often than any other pair.`;
    return ["Next: ", winner, words, overlapWords(next)];
  }
  const shown = tied.slice(0, MOST_TIED).flatMap((pair, index) => {
    const behind = index === tied.length - 1 ? "." : ",";
    return [index === 0 ? "" : " ", pairNode(pair, training.learned, behind)];
  });
  return [
    `Next: a tie. ${tied.length} pairs occur ${times}: `,
    ...shown,
    tied.length > MOST_TIED ? ` and ${tied.length - MOST_TIED} more.` : "",
    ` The rule “${rule}” takes ${RULE_WORDS[rule]}: `,
    pairNode(next, training.learned),
    ` (ids ${next.left} and ${next.right}).`,
    overlapWords(next),
  ];
}

// Places of a pair may overlap, where its halves are alike: each counts, but not all can merge.
function overlapWords(next) {
  const { weights } = training.learned;
  const merged = training.rows.reduce(
    (sum, row, index) => sum + (row.length - mergePair(row, next).length) * weights[index],
    0,
  );
  if (merged === next.count) return "";
  return ` Some of its places overlap, so ${plural(merged, "place is", "places are")} merged.`;
}

function endWords(pairs) {
  const { most, minimum, merges, pieces } = training.learned;
  if (pieces.length === 0) return ["There is no text to learn from yet."];
  if (pairs.length === 0) return ["The end: each piece is one token, so no pair is left."];
  if (pairs[0].count < minimum) {
    return [`The end: no pair occurs ${plural(minimum, "time")} or more.`];
  }
  return [`The end: the ${plural(Math.min(most, merges.length), "merge")} asked for are made.`];
}

function showPairs(pairs, next) {
  const { strings } = training.learned;
  const wins = (pair) => pair.left === next?.left && pair.right === next?.right;
  const ties = (pair) => next && pair.count === next.count && pairs[1]?.count === next.count;
  const rows = pairs.map((pair) => [
    pairNode(pair, training.learned),
    `${pair.left}, ${pair.right}`,
    number(pair.count),
    wins(pair) ? "next" : ties(pair) ? "tie" : "",
  ]);
  fillTable(byId("pairs"), rows, (index) => (wins(pairs[index]) ? "winner" : ""));
  byId("pairs-count").textContent = plural(pairs.length, "pair");
}

// Tokens of a row. Those that are merged next are marked, as is what was made last.
function rowNodes(row, next, withIds) {
  const newest = training.learned.merges[training.step - 1]?.id;
  const marks = row.map((id) => (id === newest ? "new" : ""));
  for (let place = 1; next && place < row.length; place++) {
    const free = !marks[place - 1].includes("next");
    if (free && row[place - 1] === next.left && row[place] === next.right) {
      marks[place - 1] += " next-left";
      marks[place] += " next-right";
    }
  }
  return row.map((id, place) => tokenNode(id, training.learned, marks[place], withIds));
}

function showPieces(next) {
  const { weights } = training.learned;
  const rows = training.rows.slice(0, MOST_ROWS).map((row, index) => [
    number(weights[index]),
    element("span", { class: "tokens" }, ...rowNodes(row.slice(0, MOST_TOKENS), next, false)),
  ]);
  fillTable(byId("pieces"), rows);
  byId("pieces-rest").textContent = more(training.rows.length, MOST_ROWS, "pieces");
  byId("pieces-count").textContent = plural(training.rows.length, "distinct piece");
}

function showText(next) {
  const { pieces, pattern, weights } = training.learned;
  const rowOf = new Map(pieces.map((piece, index) => [piece, training.rows[index]]));
  const nodes = [];
  for (const piece of split(training.text, patternOf(pattern))) {
    if (nodes.length >= MOST_TOKENS) break;
    const row = rowOf.get(piece).slice(0, MOST_TOKENS - nodes.length);
    const drawn = rowNodes(row, next, true);
    drawn[0].classList.add("begins");
    nodes.push(...drawn);
  }
  const tokens = training.rows.reduce((sum, row, index) => sum + row.length * weights[index], 0);
  const bytes = bytesOf(training.text).length;
  byId("text-tokens").replaceChildren(...nodes);
  byId("text-rest").textContent = more(tokens, MOST_TOKENS, "tokens");
  const size = `${plural(tokens, "token")} for ${plural(bytes, "byte")}`;
  byId("text-count").textContent = `${size}: ${ratio(bytes, tokens)} bytes per token`;
}

function showMerges(step) {
  const { merges, alphabet } = training.learned;
  const made = merges.slice(0, step).reverse(); // the newest on top
  const rows = made.map((merge) => [
    number(merge.id - alphabet.length + 1),
    pairNode(merge, training.learned),
    tokenNode(merge.id, training.learned),
    number(merge.count),
  ]);
  fillTable(byId("merges"), rows);
  byId("merges-count").textContent = plural(made.length, "merge");
}

// What a reader does

function explained() {
  return Array.from(byId("explanation").children, (line) => line.textContent);
}

function learnAgain() {
  learn();
  say(PAUSES.typed, byId("training-note").textContent, ...explained());
}

function goTo(step) {
  showStep(step);
  say(PAUSES.stepped, ...explained());
}

function pressed(button) {
  const { step, learned } = training;
  const wanted = { "to-start": 0, back: step - 1, on: step + 1, "to-end": learned.merges.length };
  goTo(wanted[button]);
}

const STEP_KEYS = { Home: "to-start", ArrowLeft: "back", ArrowRight: "on", End: "to-end" };

function stepByKey(event) {
  const elsewhere = "textarea, input, select, [role=tab], .scroll";
  if (byId("training").hidden || event.target.closest?.(elsewhere)) return;
  if (event.ctrlKey || event.altKey || event.metaKey || !(event.key in STEP_KEYS)) return;
  event.preventDefault();
  pressed(STEP_KEYS[event.key]);
}

function trainedTokenizer(name) {
  return tokenizerOfTraining(name, training.learned, training.learned);
}

function startTraining() {
  const own = DATA.text_name ?? "a text of your own";
  const examples = { [OWN]: OWN_TEXT, ...EXAMPLES };
  for (const name of Object.keys(examples)) {
    byId("example").append(option(name, name === OWN ? own : name));
  }
  byId("example").value = DATA.text === null ? Object.keys(EXAMPLES)[0] : OWN;
  setOptions(examples[byId("example").value]);
  byId("training-text").addEventListener("input", () => {
    byId("example").value = OWN;
    learnAgain();
  });
  for (const id of ["unit", "pattern"]) {
    byId(id).addEventListener("change", () => {
      agreeUnitAndPattern(id);
      learnAgain();
    });
  }
  byId("rule").addEventListener("change", learnAgain);
  for (const id of ["minimum", "most"]) {
    byId(id).addEventListener("input", learnAgain);
    // What cannot be, such as more merges than the page makes, gives way to what is used.
    byId(id).addEventListener("change", () => {
      byId(id).value = training.learned[id];
    });
  }
  byId("example").addEventListener("change", () => {
    setOptions(examples[byId("example").value]);
    learnAgain();
  });
  for (const id of Object.values(STEP_KEYS)) byId(id).addEventListener("click", () => pressed(id));
  byId("step").addEventListener("input", () => goTo(Number(byId("step").value)));
  document.addEventListener("keydown", stepByKey);
  learn();
}
