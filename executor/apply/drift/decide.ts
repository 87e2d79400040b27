/** What is to be done about an object that is not as its intent says. Pure; the caller has read it uncached. */
import type { KubeObject } from '../../kube/types.ts';
import { isWithin } from '../fieldpath.ts';
import type { Item } from '../items.ts';
import { compare, fieldText } from './compare.ts';
import type { Fight } from './fights.ts';
import { lastWriter, type Taken, whoTook } from './holders.ts';

export type Decision =
  /** As it should be; `hash` is that of values which only the server's own answers explain. */
  | { readonly type: 'none' }
  /** Another manager holds fields that the object gives up. */
  | { readonly type: 'yield'; readonly pointers: readonly string[] }
  /** Nobody else holds what differs: a dry run tells whether it is the server's way to write it. */
  | ({ readonly type: 'ask'; readonly hash: string } & Drifted)
  | ({ readonly type: 'setBack' } & Drifted)
  | { readonly type: 'fight'; readonly fight: Fight };

/** What drifted, and by whose hand. */
export interface Drifted {
  readonly taken: readonly Taken[];
  readonly fields: readonly string[];
  readonly managers: readonly string[];
}

export interface DecideInput {
  readonly item: Item;
  /** The bound object, without fields that were given up before. */
  readonly intent: KubeObject;
  readonly live: KubeObject;
  /** Hash of the named fields as they stood in an answer of the server to this intent. */
  readonly settled: string | undefined;
  /** Fields out of these that came back too often. */
  readonly returning: (fields: readonly string[]) => readonly string[];
  /** The pause of a fight is over: one more repair is tried. */
  readonly trying: boolean;
}

const unique = (words: readonly string[]): string[] => [...new Set(words)].sort();

const managersOf = (taken: readonly Taken[]): string[] =>
  unique(taken.flatMap(({ holders }) => holders.map(({ manager }) => manager)));

const fieldsOf = (taken: readonly Taken[]): string[] =>
  unique(taken.map(({ difference }) => fieldText(difference.path)));

/** Whether the index lets the object give a field up. */
const yields = ({ entry }: Item, pointer: string): boolean =>
  entry.conflict === 'yield' &&
  (entry.yieldFields === undefined || entry.yieldFields.some((at) => isWithin(pointer, at)));

/** What to do about the object. */
export function decide(input: DecideInput): Decision {
  const { item, intent, live, settled } = input;
  const compared = compare(intent, live);
  if (compared.same || compared.hash === settled) return { type: 'none' };
  const entries = live.metadata.managedFields ?? [];
  const taken = whoTook(entries, compared.differences);
  const held = taken.filter(({ holders }) => holders.length > 0);
  const given = held.filter(({ difference }) => yields(item, difference.pointer));
  if (given.length > 0) return { type: 'yield', pointers: given.map(({ difference }) => difference.pointer) };
  const applied = held.filter(({ holders }) => holders.some(({ operation }) => operation === 'Apply'));
  if (applied.length > 0)
    return {
      type: 'fight',
      fight: { id: item.id, why: 'apply', managers: managersOf(applied), fields: fieldsOf(applied) },
    };
  // Values that the server writes its own way differ too: where somebody took others, those alone are told.
  const told = held.length > 0 ? held : taken;
  const managers = held.length > 0 ? managersOf(held) : [lastWriter(entries)];
  const drifted: Drifted = { taken, fields: fieldsOf(told), managers };
  if (held.length === 0 && settled === undefined) return { type: 'ask', hash: compared.hash, ...drifted };
  return braked(item.id, drifted, input);
}

/** Sets back, unless that was done in vain too often. */
export function braked(
  id: string,
  drifted: Drifted,
  { returning, trying }: Pick<DecideInput, 'returning' | 'trying'>,
): Extract<Decision, { readonly type: 'setBack' | 'fight' }> {
  const { taken, fields, managers } = drifted;
  const back = trying ? [] : returning(fields);
  if (back.length === 0) return { type: 'setBack', taken, fields, managers };
  return { type: 'fight', fight: { id, why: 'returns', managers, fields: back } };
}
