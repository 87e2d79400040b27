/** Answers of a few words: the state of northd, of connections, versions, lists. */
import { type Reading, readAs, unreadable } from './reading.ts';

export type NorthdState = 'active' | 'standby' | 'paused';

const only = (text: string): string | undefined => {
  const trimmed = text.trimEnd();
  return trimmed.includes('\n') ? undefined : trimmed;
};

function oneOf<T>(text: string, what: string, words: Readonly<Record<string, T>>): Reading<T> {
  const word = only(text);
  if (word === undefined) return unreadable(2, `${what} has more than one line`);
  const value = Object.hasOwn(words, word) ? words[word] : undefined;
  return value === undefined ? unreadable(1, `${what} is none of ${Object.keys(words).join(', ')}`) : readAs(value);
}

/** `status` of ovn-northd. */
export const readNorthdStatus = (text: string): Reading<NorthdState> =>
  oneOf<NorthdState>(text, 'the status', {
    'Status: active': 'active',
    'Status: standby': 'standby',
    'Status: paused': 'paused',
  });

/** `connection-status` of ovn-controller, `nb-` and `sb-connection-status` of ovn-northd. */
export const readConnectionStatus = (text: string): Reading<boolean> =>
  oneOf(text, 'the connection status', { connected: true, 'not connected': false });

/** `debug/status` of ovn-controller: whether it is paused. */
export const readPaused = (text: string): Reading<boolean> =>
  oneOf(text, 'the debug status', { running: false, paused: true });

/** `version`: the version of the program that answers, which the first line names. */
export function readVersion(text: string): Reading<string> {
  const [first = ''] = text.split('\n');
  const version = /^\S+ (?:\(Open vSwitch\) )?([0-9][0-9A-Za-z.+~:_-]{0,126})\s*$/.exec(first)?.[1];
  return version === undefined ? unreadable(1, 'no program and version') : readAs(version);
}

/** The lines of an answer that lists one thing on each. */
export const readLines = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '');
