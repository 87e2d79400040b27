/** Small pieces of the page. Every value goes through a template that escapes it. */
import { html } from 'hono/html';
import type { HtmlEscapedString } from 'hono/utils/html';
import type { Mark, Told } from '../model.ts';

export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

const symbols: Readonly<Record<Mark, string>> = { well: '✓', broken: '✗', unknown: '?', working: '▸', idle: '–' };

/** The symbol alone; the word beside it says the same to those who do not see it. */
export const symbol = (mark: Mark): Html => html`<span class="mark ${mark}" aria-hidden="true">${symbols[mark]}</span>`;

export const told = ({ mark, word }: Told): Html => html`<span class="told ${mark}">${symbol(mark)} ${word}</span>`;

/** How long ago, or how long, in one unit. */
export function ageText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

/** A moment as its age, which the page's script keeps true; the moment itself is in the tooltip. */
export function age(moment: string, now: number): Html {
  const at = Date.parse(moment);
  if (Number.isNaN(at)) return html``;
  return html`<time datetime="${moment}" title="${moment}" data-age>${ageText(now - at)}</time>`;
}

/** A digest as people compare it. */
export const digest = (text: string | undefined): Html =>
  text === undefined || text === ''
    ? html`<span class="quiet">none</span>`
    : html`<code title="${text}">${text.replace(/^sha256:/, '').slice(0, 12)}</code>`;

/** A table that scrolls by itself where it is too wide, with the keyboard too. */
export const scrolling = (label: string, table: Html): Html =>
  html`<div class="scroll" role="region" aria-label="${label}" tabindex="0">${table}</div>`;
