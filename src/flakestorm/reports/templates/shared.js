// What the HTML report and the viewer's pages share. Text is put on a page as text; nothing here makes markup of strings.

export function make(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== "" && child !== undefined));
  return made;
}

export function ms(value) {
  if (value === null || value === undefined) return "unknown";
  if (value >= 60000) return `${Math.floor(value / 60000)} min ${Math.round((value % 60000) / 1000)} s`;
  if (value >= 10000) return `${(value / 1000).toFixed(1)} s`;
  return `${value < 1 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString("en")} ms`;
}

export const chip = (kind, text) => make("span", { className: `chip ${kind}`, textContent: text });

/** A text of any length; a long one can be reached and scrolled by keyboard. */
export function block(title, text, className, level = 3) {
  return make("div", null, make(`h${level}`, { className: "lesser", textContent: title }),
    make("pre", { className: `text ${className || ""}`, textContent: text, tabIndex: text.length > 600 ? 0 : -1 }));
}

/** A command line, and a button that copies it. */
export function command(text) {
  const line = make("pre", { className: "command", textContent: text });
  const button = make("button", { type: "button", className: "button", textContent: "Copy", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(line); // no clipboard here: leave it selected, one key away
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  } });
  return make("div", { className: "copy" }, line, button);
}
