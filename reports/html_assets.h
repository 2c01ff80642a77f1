// html_assets.h: style and script of render_html.h's page. Constants; nothing of a table enters them.
#pragma once

#include <string_view>

namespace iha::reports {

inline constexpr std::string_view kPageStyle = R"css(
:root {
  --back: #ffffff; --text: #1c1f23; --muted: #5a6472; --line: #d5dae0; --head: #f1f3f6; --tip: #ffffff;
  --gain: #006e28; --loss: #b41414; --focus: #0a5bd0; --link: #0a4fb4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171b; --text: #e6e9ed; --muted: #9aa5b1; --line: #343b44; --head: #1e2329; --tip: #20262d;
    --gain: #5fd38a; --loss: #ff8f8f; --focus: #7db1ff; --link: #8fbcff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 1.5rem 1rem 4rem; background: var(--back); color: var(--text);
  font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif;
}
h1 { font-size: 1.25rem; margin: 0 0 .75rem; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
a { color: var(--link); }
bdi { overflow-wrap: anywhere; }
#scores { border-collapse: collapse; font-variant-numeric: tabular-nums; }
#scores th, #scores td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: right; }
#scores thead th { background: var(--head); vertical-align: bottom; padding: 0; }
#scores th:first-child { text-align: left; min-width: 9rem; }
#scores button {
  all: unset; display: block; width: 100%; padding: .35rem .6rem; cursor: pointer; font-weight: 600;
  box-sizing: border-box; max-width: 16rem;
}
#scores thead bdi { overflow-wrap: break-word; }  /* words stay whole: unlike "anywhere" it makes no column narrow */
#scores th:not(:first-child) button { margin-left: auto; }
#scores button::after { content: " \2195"; color: var(--muted); }
#scores [aria-sort="ascending"] button::after { content: " \2191"; color: inherit; }
#scores [aria-sort="descending"] button::after { content: " \2193"; color: inherit; }
#scores button:focus-visible, td:focus-visible { outline: 2px solid var(--focus); outline-offset: -2px; }
td.value { position: relative; cursor: help; }
td.best .number { font-weight: 700; }
.gain { color: var(--gain); }
.loss { color: var(--loss); }
.muted { color: var(--muted); }
.tip {
  display: none; position: absolute; z-index: 2; top: 100%; left: 0; width: 24rem; padding: .6rem .75rem;
  background: var(--tip); border: 1px solid var(--line); border-radius: 6px; box-shadow: 0 4px 14px #0004;
  text-align: left; font-weight: 400; cursor: auto; overflow-wrap: anywhere;
}
.tip.right { left: auto; right: 0; }
.tip span { display: block; }
td.value:hover > .tip, td.value:focus > .tip, td.value:focus-within > .tip { display: block; }
.means { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.means th, .means td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: right; }
.means th:first-child { text-align: left; min-width: 9rem; }
ul.plain { margin: .5rem 0; padding-left: 1.2rem; }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; }
pre {
  margin: .3rem 0 1rem; padding: .5rem .7rem; background: var(--head); border-radius: 6px; white-space: pre-wrap;
  overflow-wrap: anywhere; font: 13px/1.4 ui-monospace, "DejaVu Sans Mono", monospace;
}
@media print { #scores button::after { content: ""; } .tip { display: none !important; } }
)css";

inline constexpr std::string_view kPageScript = R"js(
"use strict";
const table = document.getElementById("scores");
const body = table.tBodies[0];

function sortBy(button) {
  const head = button.parentElement;
  const first = button.dataset.first;
  const second = first === "ascending" ? "descending" : "ascending";
  const order = head.getAttribute("aria-sort") === first ? second : first;
  for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const asText = head.cellIndex === 0;
  const compare = (a, b) => {
    const x = a.cells[head.cellIndex].dataset.v;
    const y = b.cells[head.cellIndex].dataset.v;
    const given = a.dataset.i - b.dataset.i;
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined) || given;
    const difference = asText ? (x < y ? -1 : x > y ? 1 : 0) : x - y;
    return sign * difference || given;
  };
  body.append(...[...body.rows].sort(compare));
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.querySelector("summary").focus();
  }
}

const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

function moveFocus(event) {
  if (event.key === "Escape") document.activeElement.blur();
  const cell = document.activeElement;
  if (!(event.key in steps) || !cell.matches("#scores td.value")) return;
  const [down, right] = steps[event.key];
  const row = body.rows[cell.parentElement.sectionRowIndex + down];
  let column = cell.cellIndex + right;
  while (row && row.cells[column] && !row.cells[column].matches("td.value")) column += right || 1;
  if (!row || !row.cells[column]) return;
  event.preventDefault();
  row.cells[column].focus();
}

for (const button of table.querySelectorAll("thead button")) button.addEventListener("click", () => sortBy(button));
addEventListener("hashchange", openTarget);
addEventListener("keydown", moveFocus);
openTarget();
)js";

}  // namespace iha::reports
