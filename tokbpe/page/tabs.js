// The two tabs, as the ARIA authoring practices describe them, and the start of the page.

const TABS = ["training", "encoding"];

function showTab(name) {
  for (const tab of TABS) {
    const isShown = tab === name;
    byId(tab).hidden = !isShown;
    byId(`${tab}-tab`).setAttribute("aria-selected", isShown);
    byId(`${tab}-tab`).tabIndex = isShown ? 0 : -1;
  }
  // The training may have gone on while this tab was hidden.
  if (name === "encoding") encodeText();
}

function tabByKey(event) {
  const last = TABS.length - 1;
  const at = TABS.findIndex((tab) => byId(`${tab}-tab`) === event.target);
  const wanted = {
    ArrowLeft: at === 0 ? last : at - 1,
    ArrowRight: at === last ? 0 : at + 1,
    Home: 0,
    End: last,
  }[event.key];
  if (wanted === undefined) return;
  event.preventDefault();
  showTab(TABS[wanted]);
  byId(`${TABS[wanted]}-tab`).focus();
}

for (const tab of TABS) byId(`${tab}-tab`).addEventListener("click", () => showTab(tab));
byId("tabs").addEventListener("keydown", tabByKey);
startTraining();
startEncoding();
showTab(DATA.tokenizers.length > 0 && DATA.text === null ? "encoding" : "training");
