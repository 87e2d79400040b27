/** The look: system fonts, four colours that only repeat what symbols and words say, one column on a phone. */
export const style = `
:root {
  color-scheme: light dark;
  --ground: #f7f7f5; --sheet: #fff; --ink: #1b1f24; --quiet: #59636e; --line: #dfe2e5; --soft: #eceeef;
  --well: #17693f; --broken: #b3261e; --unknown: #7d5200; --working: #1c57a8;
  --sans: ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171a; --sheet: #1b1f23; --ink: #e4e7ea; --quiet: #9aa5b1; --line: #31373d; --soft: #262b30;
    --well: #6cc796; --broken: #ff8b80; --unknown: #e5b454; --working: #8ab8ff;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 0 1.25rem 2rem; background: var(--ground); color: var(--ink);
  font: 0.875rem/1.45 var(--sans); -webkit-text-size-adjust: 100%; }
p, ul, ol, h1, h2, h3, h4 { margin: 0; }
ul, ol { padding: 0; list-style: none; }
code { font: 0.92em var(--mono); }
.num { font-variant-numeric: tabular-nums; }
.quiet, .note { color: var(--quiet); }
.note { font-size: 0.8125rem; overflow-wrap: anywhere; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
:focus-visible { outline: 3px solid var(--working); outline-offset: 2px; border-radius: 3px; }
main:focus { outline: none; }
.skip { position: absolute; left: 1rem; top: -4rem; padding: 0.5rem 1rem; background: var(--ink); color: var(--sheet); }
.skip:focus { top: 0.5rem; z-index: 1; }

.bar { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0.15rem 1rem; padding: 0.9rem 0 0.7rem; }
.bar h1 { font-size: 1.0625rem; letter-spacing: 0.01em; }
.bar #live { margin-left: auto; }
footer { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; margin-top: 1.5rem; font-size: 0.8125rem; }

.mark { display: inline-block; min-width: 1em; text-align: center; font-weight: 700; }
.mark.well { color: var(--well); }
.mark.broken, .told.broken { color: var(--broken); }
.mark.unknown, .told.unknown { color: var(--unknown); }
.mark.working, .told.working { color: var(--working); }
.mark.idle, .told.idle { color: var(--quiet); }
.told.broken, .told.unknown { font-weight: 600; }
@media (prefers-reduced-motion: no-preference) {
  .mark.working { animation: breathe 2s ease-in-out infinite; }
  @keyframes breathe { 50% { opacity: 0.35; } }
}

.verdict { padding: 1rem 1.25rem; background: var(--sheet); border: 1px solid var(--line); border-left-width: 0.4rem; border-radius: 0.5rem; }
.verdict.well { border-left-color: var(--well); }
.verdict.broken { border-left: 0.4rem double var(--broken); }
.verdict.unknown { border-left: 0.4rem dashed var(--unknown); }
.eyebrow { color: var(--quiet); font-size: 0.8125rem; }
.verdict h2 { font-size: 1.5rem; line-height: 1.3; font-weight: 650; }
.verdict .reason { font-weight: 400; color: var(--quiet); font-size: 1rem; }

.verdict .why { max-width: 60rem; overflow-wrap: anywhere; }
.conditions { margin: 0.6rem 0 0; padding: 0 1.25rem; }
.condition { display: grid; grid-template-columns: 18.5rem 1fr; gap: 0 1.25rem; padding: 0.35rem 0; border-bottom: 1px solid var(--line); }
.condition > p:first-child { display: flex; justify-content: space-between; gap: 0.5rem; }
.condition > p { overflow-wrap: anywhere; }
.condition > p:first-child > * { white-space: nowrap; }
.calm { padding: 0.5rem 1.25rem 0; font-size: 0.8125rem; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(27rem, 100%), 1fr)); gap: 0.75rem; margin-top: 1rem; }
.panel, .release { background: var(--sheet); border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.75rem 1.25rem; min-width: 0; }
.panel.full { grid-column: 1 / -1; }
h4 { font-size: 0.9375rem; font-weight: 650; margin-bottom: 0.3rem; }
h4 .quiet { font-weight: 400; font-size: 0.8125rem; margin-left: 0.5rem; }
.inline { display: flex; flex-wrap: wrap; gap: 0.2rem 1.25rem; }

.scroll { overflow-x: auto; margin: 0 -0.5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 0.22rem 0.5rem; vertical-align: top; font-weight: 400; white-space: nowrap; }
thead th { color: var(--quiet); font-size: 0.75rem; border-bottom: 1px solid var(--line); }
tbody tr + tr > * { border-top: 1px solid var(--soft); }
tbody th { font-weight: 600; }
th.num, td.num { text-align: right; }
.matrix td.num { text-align: left; }
.matrix .total > * { border-bottom: 1px solid var(--line); }
.matrix .note { white-space: normal; margin-left: 0.6em; }
td.wide { white-space: normal; min-width: 10rem; }

section > h2#addresses { font-size: 1.0625rem; font-weight: 650; margin-bottom: 0.3rem; }
section[aria-labelledby="addresses"] { margin-top: 1rem; }
section > h2#releases { font-size: 1.0625rem; font-weight: 650; margin: 1.75rem 0 0.6rem; }
.release { margin-bottom: 0.75rem; }
.release > header { display: grid; grid-template-columns: auto 1fr; gap: 0 1rem; align-items: baseline; }
.release h3 { font-size: 1rem; font-weight: 650; }
.release .facts { grid-column: 1 / -1; display: flex; flex-wrap: wrap; gap: 0 1.25rem; color: var(--quiet); font-size: 0.8125rem; }
progress { grid-column: 1 / -1; appearance: none; width: 100%; height: 0.3rem; margin-top: 0.4rem; border: 0; border-radius: 0.15rem; background: var(--soft); overflow: hidden; }
progress::-webkit-progress-bar { background: var(--soft); }
progress::-webkit-progress-value { background: var(--quiet); }
progress::-moz-progress-bar { background: var(--quiet); }
.phases { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(13.5rem, 100%), 1fr)); gap: 0 1.25rem; margin-top: 0.6rem; }
.phase { border-top: 2px solid var(--line); padding: 0.4rem 0 0.5rem; min-width: 0; }
.phase.well { border-top-color: var(--well); }
.phase.working { border-top: 2px dashed var(--working); }
.phase.broken { border-top: 4px double var(--broken); }
.phase-head { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 0.5rem; }
.phase-head strong { overflow-wrap: anywhere; }
.phase > p.quiet { font-size: 0.8125rem; }
.gates { margin-top: 0.25rem; }
.gate { padding: 0.15rem 0; font-size: 0.8125rem; }
.gate-name { display: block; overflow-wrap: anywhere; }
.gate > .quiet, .gate > .note { display: block; padding-left: 1.3em; }
.phase.idle .gate { color: var(--quiet); }
.callout { margin-top: 0.6rem; padding: 0.4rem 0.75rem; border-left: 3px solid var(--line); background: var(--soft); border-radius: 0 0.3rem 0.3rem 0; overflow-wrap: anywhere; }
.callout.broken { border-left: 4px double var(--broken); }
.callout.unknown { border-left: 3px dashed var(--unknown); }
details { margin-top: 0.5rem; border-top: 1px solid var(--soft); padding-top: 0.4rem; }
summary { cursor: pointer; font-weight: 600; }
summary .quiet { font-weight: 400; font-size: 0.8125rem; margin-left: 0.4rem; }

@media (max-width: 40rem) {
  body { padding: 0 0.75rem 1.5rem; }
  .verdict, .panel, .release { padding: 0.7rem 0.85rem; }
  .conditions { padding: 0 0.85rem; }
  .condition { grid-template-columns: 1fr; }
  .calm { padding: 0.5rem 0.85rem 0; }
  .extra { display: none; }
  .matrix th, .matrix td { font-size: 0.72rem; padding: 0.22rem 0.18rem; }
  .release > header { grid-template-columns: 1fr; }
  .bar #live { margin-left: 0; }
  .verdict h2 { font-size: 1.25rem; }
  .matrix .note { display: none; }
  th, td { padding: 0.22rem 0.35rem; }
}
@media (forced-colors: active) { .mark, .told { forced-color-adjust: auto; } }
@media print { body { background: #fff; } .skip, #live { display: none; } }
`;

/** A keel under its line of water. */
export const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M1 5h14M3 5c0 5 2 7 5 9 3-2 5-4 5-9" fill="none" stroke="#1c57a8" stroke-width="2"/></svg>';
