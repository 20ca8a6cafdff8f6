// What can be started from a page, a fork or a shrink: its form, and plainly what would be executed.
import { Refused, act, address, api, command, make, panel, quiet } from "./dom.js";
import { go } from "./main.js";

const PAUSE_MS = 150;
const CHANGES = [["fault", "A fault on the recorded reply"], ["resample", "The world is asked again"], ["set", "Another reply"], ["model", "Another model of the same provider"]];
const TOOLS = [["live", "are really called"], ["tape", "are answered by the tape"]];

let fields = 0;
function field(label, control, hint) {
  const id = `field-${fields += 1}`;
  control.id = id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return make("div", { className: "field" }, make("label", { htmlFor: id, textContent: label }), control, hint ? make("small", { id: `${id}-hint`, className: "quiet", textContent: hint }) : "");
}
const choice = (of, onchange) => make("select", { onchange }, ...of.map(([value, textContent]) => make("option", { value, textContent })));

/** `wish()` says what is asked for; the form shows what that comes to, and starts it. Gives the form and what renews it. */
function form(wish, controls, label) {
  const problem = make("p", { className: "bad", role: "status" });
  const shown = make("section", { className: "plan", ariaLabel: "What will be executed" });
  const button = make("button", { type: "submit", className: "button primary", textContent: label, disabled: true });
  let asked = 0, timer = 0;
  const put = (words, says, line) => {
    problem.textContent = words;
    shown.hidden = !line;
    shown.replaceChildren(...(line ? [make("h3", { textContent: "What will be executed" }), command(line), make("ul", { className: "noted" }, ...says.map((textContent) => make("li", { textContent })))] : []));
  };
  const renew = async () => {
    const mine = asked += 1;
    const { value, ...rest } = wish();
    try {
      const found = await api("plan", rest.change === "set" ? rest : { ...rest, value });
      if (mine !== asked) return;
      put(found.problem || (found.busy ? `${found.busy} is under way; one at a time.` : ""), found.says, found.line);
      button.disabled = !found.line || Boolean(found.busy);
      if (made.known) made.known(found.modes);
    } catch (error) {
      if (mine === asked) put(error.message, [], "");
    }
  };
  const box = make("form", { className: "start", onsubmit: async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    try {
      const { id } = await act("start", wish());
      go(address("/work", { id }));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      problem.textContent = error.message;
      button.disabled = false;
    }
  } }, ...controls, shown, problem, make("p", { className: "saves" }, button));
  box.addEventListener("input", () => { button.disabled = true; clearTimeout(timer); timer = setTimeout(renew, PAUSE_MS); });
  const made = { box, renew, known: null };
  return made;
}

export async function forkForm(of, at, back, closed) {
  const found = await api("exchange", { of, at, turns: 1 });
  const changes = choice(found.kind === "llm" ? CHANGES : CHANGES.slice(0, 3), () => lay());
  const modes = make("datalist", { id: "modes" });
  const fault = make("input", { type: "text", value: "error:503", autocomplete: "off", spellcheck: false });
  fault.setAttribute("list", "modes");
  if (found.kind === "llm") fault.value = "server_error";
  const model = make("input", { type: "text", autocomplete: "off", spellcheck: false });
  const body = make("textarea", { rows: 8, spellcheck: false, value: found.reply.body });
  const tools = choice(TOOLS);
  const values = {
    fault: [fault, field("Fault", fault, "MODE or MODE:SETTING, as --inject has it")],
    set: [body, field("The whole body of the reply", body, "Status and headers stay as they were recorded.")],
    model: [model, field("Model", model)],
  };
  const slot = make("div");
  const lay = () => slot.replaceChildren(...(values[changes.value] ? [values[changes.value][1]] : []));
  const wish = () => ({ kind: "fork", of, at, change: changes.value, value: values[changes.value]?.[0].value ?? "", tools: tools.value });
  const made = form(wish, [field("What is changed", changes), slot, modes, field("Tools after it", tools)], "Fork");
  made.known = (names) => { if (!modes.childElementCount) modes.append(...names.map((value) => make("option", { value }))); };
  lay();
  panel(`Fork at ${found.site}`, ["The recorded run again, up to here as it was; then one change, and what follows."],
    [make("button", { type: "button", className: "button", textContent: "Back to the exchange", onclick: back })], made.box, closed);
  await made.renew();
}

export async function shrinkForm(of, closed) {
  const budget = make("input", { type: "number", min: 2, max: 5000, value: 200, inputMode: "numeric" });
  const made = form(() => ({ kind: "shrink", of, budget: budget.value }), [field("At most so many runs", budget)], "Shrink");
  panel("Shrink this failure", ["The smallest form of the case that fails in the same way: fewer, weaker and earlier faults."], [],
    [quiet("Each run asks the agent once. It ends by itself when nothing smaller fails, and can be cancelled."), made.box], closed);
  await made.renew();
}
