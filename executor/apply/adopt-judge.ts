/** Whether one object can be adopted as it is: asks the server, and lists all that differs. Nothing is stored. */
import { annotations, labels, managers } from '../../constructs/api/constants.ts';
import { deepEqual, getAt, isObject, type JsonValue, pointerTokens, setAt } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ApplyConflict } from '../kube/outcome.ts';
import { describeRef, type KubeObject, resourceVersionOf, uidOf } from '../kube/types.ts';
import { foldManagers } from './adopt-fields.ts';
import { type AdoptionRules, adoptionProblems, isSameButImages } from './adopt-rules.ts';
import { compare, fieldText } from './drift/compare.ts';
import { pointerOf, without } from './fieldpath.ts';
import { type Item, itemRef } from './items.ts';
import { verdictOf } from './ownership.ts';

/** An object that may be adopted. */
export interface Adoption {
  readonly item: Item;
  /** As the payload wants it, bound. */
  readonly intent: KubeObject;
  readonly uid: string;
  /** The object as it was judged; no other version of it is written. */
  readonly live: KubeObject;
  /** Managers that give fields up for it. */
  readonly take: readonly string[];
  /** Fields, in the words of the server, whose image is the same by tag as the payload's by digest; they change afterwards. */
  readonly pinned: readonly string[];
}

export interface AdoptInput {
  readonly client: KubeClient;
  readonly rules: AdoptionRules;
  readonly signal: AbortSignal;
}

interface Refusal {
  readonly problems: readonly Problem[];
  readonly unavailable?: boolean;
}

export type AdoptVerdict = { readonly adoption: Adoption } | Refusal;

/** A field that differs: its place in the intent, and the server's words for it. */
interface Difference {
  readonly pointer: string;
  readonly field: string;
}

const mostRounds = 4;

/** What an adoption writes itself: our marks. */
const markLabels: readonly string[] = [labels.managedBy, labels.release, labels.phase, labels.installationUID];

function isMark(pointer: string): boolean {
  const [first, second, third = ''] = pointerTokens(pointer);
  if (first !== 'metadata') return false;
  if (second === 'ownerReferences') return true;
  return second === 'labels' ? markLabels.includes(third) : second === 'annotations' && third === annotations.id;
}

/** The object with the differing fields as they are in the cluster; a field that is not there is left out. */
export function asLive(intent: KubeObject, live: KubeObject, fields: readonly string[]): KubeObject {
  let object: JsonValue = intent;
  for (const field of fields) {
    const [at, there] = [pointerOf(intent, field), pointerOf(live, field)];
    if (at !== undefined) object = setAt(object, at, there === undefined ? undefined : getAt(live, there));
  }
  return isObject(object) ? (object as KubeObject) : intent;
}

/** Judges one object. `known` is the UID under which its adoption has begun already. */
export async function judgeAdoption(
  { client, rules, signal }: AdoptInput,
  item: Item,
  intent: KubeObject,
  known: string | undefined,
): Promise<AdoptVerdict> {
  const ref = itemRef(item);
  const found = await client.get(ref, { signal });
  if (found.type !== 'found' && found.type !== 'absent' && found.type !== 'kindAbsent')
    return unavailable(item, found.message);
  const live = found.type === 'found' ? found.object : undefined;
  const problems = adoptionProblems(item, intent, live, rules, known);
  if (problems.length > 0 || live === undefined) return { problems };
  const asked = await ask({ client, rules, signal }, item, intent, live);
  if ('problems' in asked) return asked;
  const real = asked.differences.filter(({ pointer }) => !isMark(pointer));
  const image = ({ pointer, field }: Difference): boolean =>
    isSameButImages(valueAt(live, field), getAt(intent, pointer), rules.version);
  const differs = real.filter((difference) => !image(difference));
  if (differs.length > 0) return { problems: [differing(item, intent, live, differs)] };
  const fold = foldManagers(live.metadata.managedFields ?? [], intent, rules.takeManagers);
  return {
    adoption: {
      item,
      intent,
      uid: uidOf(live),
      live,
      take: fold?.from ?? [],
      pinned: real.map(({ field }) => field).sort(),
    },
  };
}

const unavailable = (item: Item, message: string): Refusal => ({
  problems: [{ reason: 'ApiUnavailable', message, object: describeRef(itemRef(item)) }],
  unavailable: true,
});

function valueAt(object: KubeObject, field: string): JsonValue | undefined {
  const pointer = pointerOf(object, field);
  return pointer === undefined ? undefined : getAt(object, pointer);
}

/** Asks until nothing is in the way but what listed managers hold; answers every field whose value would change. */
async function ask(
  { client, rules, signal }: AdoptInput,
  item: Item,
  intent: KubeObject,
  live: KubeObject,
): Promise<{ readonly differences: readonly Difference[] } | Refusal> {
  const held: Difference[] = [];
  let sent = intent;
  for (let round = 0; round < mostRounds; round += 1) {
    const answer = await client.apply(sent, { fieldManager: managers.objects, dryRun: true, uid: uidOf(live), signal });
    if (answer.type === 'configured' || answer.type === 'unchanged') {
      const settled = await settle({ client, rules, signal }, item, intent, live, held);
      return 'problems' in settled
        ? settled
        : { differences: [...settled.differences, ...changed(answer.object, live)] };
    }
    if (answer.type !== 'conflict') {
      const verdict = verdictOf(item, intent, { need: 'write', why: 'new' }, answer);
      if ('problem' in verdict) return { problems: [verdict.problem], unavailable: verdict.verdict === 'unavailable' };
      return unavailable(item, `the API server answered '${answer.type}' to an apply with the UID of the live object`);
    }
    const problem = unlisted(item, answer, rules);
    if (problem !== undefined) return { problems: [problem] };
    const fields = answer.managers.flatMap((manager) => manager.fields);
    const known = fields.flatMap((field): Difference[] => {
      const pointer = pointerOf(intent, field);
      return pointer === undefined ? [] : [{ pointer, field }];
    });
    if (known.length < fields.length || known.length === 0) break;
    held.push(...known);
    sent = without(
      intent,
      held.map(({ pointer }) => pointer),
    ) as KubeObject;
  }
  return {
    problems: [
      {
        reason: 'FieldConflict',
        message: 'other managers hold fields that can not be found in the object',
        object: describeRef(itemRef(item)),
      },
    ],
  };
}

/**
 * Fields that conflict only until the server has filled in what the intent leaves to it: values are compared in its own
 * words.
 */
async function settle(
  { client, signal }: AdoptInput,
  item: Item,
  intent: KubeObject,
  live: KubeObject,
  held: readonly Difference[],
): Promise<{ readonly differences: readonly Difference[] } | Refusal> {
  // Labels and annotations are no other in the server's words.
  const open = held.filter(({ pointer }) => pointerTokens(pointer)[0] !== 'metadata');
  if (open.length === 0) return { differences: held };
  const answer = await client.preview(
    itemRef(item),
    { resourceVersion: resourceVersionOf(live), values: intent, fieldManager: managers.objects },
    { signal },
  );
  if (answer.type !== 'updated') return unavailable(item, textOf(answer));
  const real = open.filter(({ field }) => !deepEqual(valueAt(answer.object, field), valueAt(live, field)));
  return { differences: [...held.filter((difference) => !open.includes(difference)), ...real] };
}

const textOf = (answer: { readonly type: string; readonly message?: string }): string => answer.message ?? answer.type;

/** Managers that hold differing fields and are not listed: nothing is ever taken from them. */
function unlisted(item: Item, { managers: holders }: ApplyConflict, rules: AdoptionRules): Problem | undefined {
  const others = holders.filter(({ manager }) => !rules.takeManagers.includes(manager));
  if (others.length === 0) return undefined;
  const names = [...new Set(others.map(({ manager }) => manager))].sort();
  const path = others[0]?.fields[0];
  return {
    reason: 'FieldConflict',
    message: others
      .map(
        ({ manager, operation, fields }) =>
          `${manager}${operation === undefined ? '' : ` (${operation})`} holds ${fields.join(', ')}`,
      )
      .join('; '),
    object: describeRef(itemRef(item)),
    ...(path === undefined ? {} : { path }),
    remedy: `list ${names.join(', ')} in spec.adoption.takeManagers when these fields may be taken over, or let that manager give them up`,
  };
}

/** Fields that the server would set to another value, in an answer without conflicts. */
function changed(answer: KubeObject, live: KubeObject): Difference[] {
  const { status: _s, metadata, ...rest } = answer;
  const { labels: found = {}, annotations: notes = {}, ownerReferences } = metadata;
  const named = { labels: found, annotations: notes, ...(ownerReferences === undefined ? {} : { ownerReferences }) };
  const compared = compare({ ...rest, metadata: named } as KubeObject, live);
  if (compared.same) return [];
  return compared.differences.map(({ path, pointer }) => ({ pointer, field: fieldText(path) }));
}

const most = 5;

/** Of two lists, what only one of them has; anything else as it is. */
function unlike(value: JsonValue | undefined, other: JsonValue | undefined): JsonValue | undefined {
  if (!Array.isArray(value) || !Array.isArray(other)) return value;
  return value.filter((element) => !other.some((one) => deepEqual(element, one)));
}

function differing(item: Item, intent: KubeObject, live: KubeObject, differs: readonly Difference[]): Problem {
  const secret = item.entry.kind === 'Secret';
  const text = (value: JsonValue | undefined): string =>
    value === undefined ? 'nothing' : secret ? '(withheld)' : JSON.stringify(value).slice(0, 120);
  const words = differs.slice(0, most).map(({ pointer, field }) => {
    const [there, wanted] = [valueAt(live, field), getAt(intent, pointer)];
    return `${field} is ${text(unlike(there, wanted))}, the payload has ${text(unlike(wanted, there))}`;
  });
  const more = differs.length > most ? `; and ${differs.length - most} more` : '';
  return {
    reason: 'AdoptionDiffers',
    message: `${words.join('; ')}${more}`,
    object: describeRef(itemRef(item)),
    remedy:
      'an adoption changes no value: correct the spec so that it renders what is there, or change the object first',
  };
}
