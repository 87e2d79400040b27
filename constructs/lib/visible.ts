/**
 * A text without characters that a terminal acts upon, or that turn the order around in which others are shown. Names,
 * annotations and messages come from clusters and repositories, and whoever writes them must not move the cursor of whoever
 * reads them. Line ends and tabs stay; the rest is written as JSON would.
 */
export const visible = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, escaped);

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The same as a part of a line: what would begin another one, and look like one of ours, is written out as well. */
export const visibleInLine = (text: string): string => visible(text).replace(/[\t\n\u2028\u2029]/g, escaped);
