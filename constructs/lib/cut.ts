/** The beginning of a text, of so many UTF-16 code units at most. Half of a character, which no server stores as it is, is none of it. */
export const cut = (text: string, most: number): string => text.slice(0, most).toWellFormed();
