/** What reading a daemon's text comes to. Readers are total: a text of another form is a problem, never an exception. */
export type Reading<T> =
  | { readonly type: 'read'; readonly value: T }
  /** `line` counts from 1; it is the last line when something is missing. */
  | { readonly type: 'unreadable'; readonly line: number; readonly message: string };

export const readAs = <T>(value: T): Reading<T> => ({ type: 'read', value });
export const unreadable = <T>(line: number, message: string): Reading<T> => ({ type: 'unreadable', line, message });
