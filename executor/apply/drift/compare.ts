/**
 * The live object against the fields that the intent names, and against nothing else. Pure. What the API server fills in,
 * normalises or converts is not known here: a difference is a doubt until an answer of the server itself has settled it.
 */
import { digestOf, sha256Digest } from '../../../constructs/lib/digest.ts';
import { deepEqual, isObject, type JsonObject, type JsonValue, toPointer } from '../../../constructs/lib/json.ts';
import { stepValue } from '../../kube/managedfields.ts';
import { type KubeObject, serverFields } from '../../kube/types.ts';

/** A field whose live value is not the one that the intent names. */
export interface Difference {
  /** Its path in the steps of managedFields: `f:spec`, `k:{"name":"main"}`, `v:"x"`. */
  readonly path: readonly string[];
  /** Its place in the intent, as a JSON pointer. */
  readonly pointer: string;
  /** The live object has nothing in this place. */
  readonly missing: boolean;
}

/** `hash` stands for the live values of all fields that the intent names. */
export type Comparison =
  | { readonly same: true }
  | { readonly same: false; readonly hash: string; readonly differences: readonly Difference[] };

/** What managedFields say of a place: the subtrees of all entries that mention it. They tell which lists have keys. */
type Nodes = readonly JsonObject[];

interface Place {
  readonly path: readonly string[];
  readonly tokens: readonly (string | number)[];
  readonly nodes: Nodes;
}

const identity: ReadonlySet<string> = new Set(['name', 'namespace', ...serverFields]);

/** Compares every field of the intent but its identity. Neither object is changed. */
export function compare(intent: KubeObject, live: KubeObject): Comparison {
  const differences: Difference[] = [];
  const nodes = (live.metadata.managedFields ?? []).flatMap(({ fieldsV1 }) => (isObject(fieldsV1) ? [fieldsV1] : []));
  const { apiVersion: _a, kind: _k, metadata, status: _s, ...rest } = intent;
  const root: Place = { path: [], tokens: [], nodes };
  const named = Object.fromEntries(Object.entries(metadata).filter(([key]) => !identity.has(key)));
  const seen = {
    ...members(rest, live, root, differences),
    metadata: members(named, live.metadata, under(root, 'metadata'), differences),
  };
  return differences.length === 0 ? { same: true } : { same: false, hash: hashOf(seen), differences };
}

/** Somebody else may have written what canonical JSON has no text for, such as an integer beyond 2^53-1: that is a difference as any. */
function hashOf(seen: JsonObject): string {
  try {
    return digestOf(seen);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return sha256Digest(JSON.stringify(seen));
  }
}

const under = ({ path, tokens, nodes }: Place, name: string): Place => ({
  path: [...path, `f:${name}`],
  tokens: [...tokens, name],
  nodes: below(nodes, `f:${name}`),
});

function below(nodes: Nodes, step: string): Nodes {
  return nodes.flatMap((node) => {
    const next = Object.hasOwn(node, step) ? node[step] : undefined;
    return isObject(next) ? [next] : [];
  });
}

/** Live values of the members that the intent names. */
function members(intent: JsonObject, live: JsonObject, place: Place, found: Difference[]): JsonObject {
  const seen: [string, JsonValue][] = [];
  for (const [name, wanted] of Object.entries(intent)) {
    if (wanted === null || wanted === undefined) continue;
    const there = Object.hasOwn(live, name) ? live[name] : undefined;
    // Most fields are as they were sent: where those stand matters to nobody.
    const value = there === wanted ? there : field(wanted, there, under(place, name), found);
    if (value !== undefined) seen.push([name, value]);
  }
  return Object.fromEntries(seen);
}

/** The live value of one field, reduced to what the intent names of it. */
function field(
  intent: JsonValue,
  live: JsonValue | undefined,
  place: Place,
  found: Difference[],
): JsonValue | undefined {
  // What is as it was sent from here on down needs no second look, whoever holds what of it.
  if (deepEqual(intent, live)) return live ?? undefined;
  if (isObject(intent) && isObject(live) && !isWhole(place.nodes)) return members(intent, live, place, found);
  // Of a map that is gone each field is missed by itself: whoever holds the empty place holds none of them.
  if (isObject(intent) && (live ?? undefined) === undefined && Object.keys(intent).length > 0)
    return members(intent, {}, place, found);
  if (Array.isArray(intent) && Array.isArray(live)) {
    const keys = keysOf(place.nodes);
    if (keys !== undefined) return keyed(intent, live, keys, place, found);
    if (place.nodes.some((node) => Object.keys(node).some((step) => step.startsWith('v:'))))
      return values(intent, live, place, found);
  }
  found.push({ path: place.path, pointer: toPointer(place.tokens), missing: (live ?? undefined) === undefined });
  return live ?? undefined;
}

/** A map or list that its owners hold as one value. Where nobody is known to hold it, a map is taken apart. */
const isWhole = (nodes: Nodes): boolean =>
  nodes.length > 0 && nodes.every((node) => Object.keys(node).every((step) => step === '.'));

/** Names of the keys of a list of maps, when some manager holds an element of it by key. */
function keysOf(nodes: Nodes): string[] | undefined {
  for (const node of nodes)
    for (const step of Object.keys(node)) {
      const keys = step.startsWith('k:') ? stepValue(step) : undefined;
      if (isObject(keys)) return Object.keys(keys);
    }
  return undefined;
}

const keyValues = (element: JsonObject, keys: readonly string[]): JsonObject =>
  Object.fromEntries(keys.flatMap((key) => (element[key] === undefined ? [] : [[key, element[key]]])));

/** Elements found by their keys; those that the intent does not name are another's. A key that it leaves to its default fits any. */
function keyed(
  intent: readonly JsonValue[],
  live: readonly JsonValue[],
  keys: readonly string[],
  place: Place,
  found: Difference[],
): JsonValue {
  const asks = intent.map((wanted) => (isObject(wanted) ? keyValues(wanted, keys) : {}));
  const matches = matched(asks, live.filter(isObject));
  return intent.map((wanted, index): JsonValue => {
    const asked = asks[index] ?? {};
    const match = matches.get(asked);
    const step = stepOf(match === undefined ? asked : keyValues(match, keys), place.nodes);
    const here = {
      path: [...place.path, step],
      tokens: [...place.tokens, index],
      nodes: below(place.nodes, step),
    };
    if (match === undefined || !isObject(wanted) || Object.keys(asked).length === 0) {
      found.push({ path: here.path, pointer: toPointer(here.tokens), missing: true });
      return null;
    }
    return members(wanted, match, here, found);
  });
}

/** Which live element each set of keys means. Those that name all keys choose first. */
function matched(asks: readonly JsonObject[], live: readonly JsonObject[]): Map<JsonObject, JsonObject> {
  const free = new Set(live);
  const found = new Map<JsonObject, JsonObject>();
  for (const asked of asks.toSorted((a, b) => Object.keys(b).length - Object.keys(a).length)) {
    const fits = (element: JsonObject): boolean =>
      Object.entries(asked).every(([key, value]) => deepEqual(value, element[key]));
    const match = [...free].find(fits);
    if (match === undefined) continue;
    free.delete(match);
    found.set(asked, match);
  }
  return found;
}

/** The step of an element as managedFields write it. */
function stepOf(keys: JsonObject, nodes: Nodes): string {
  const steps = nodes.flatMap((node) => Object.keys(node)).filter((step) => step.startsWith('k:'));
  return steps.find((step) => deepEqual(stepValue(step), keys)) ?? `k:${JSON.stringify(keys)}`;
}

function values(
  intent: readonly JsonValue[],
  live: readonly JsonValue[],
  place: Place,
  found: Difference[],
): JsonValue {
  return intent.filter((wanted, index) => {
    const there = live.some((value) => deepEqual(value, wanted));
    if (!there)
      found.push({
        path: [...place.path, `v:${JSON.stringify(wanted)}`],
        pointer: toPointer([...place.tokens, index]),
        missing: true,
      });
    return there;
  });
}

/** How people, and the server's conflicts, write the path of a field: `.spec.containers[name="main"].image`. */
export function fieldText(path: readonly string[]): string {
  return path
    .map((step) => {
      const rest = step.slice(2);
      if (step.startsWith('f:')) return `.${rest}`;
      if (step.startsWith('v:')) return `[=${rest}]`;
      const keys = stepValue(step);
      if (!isObject(keys)) return `[${rest}]`;
      return `[${Object.entries(keys)
        .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
        .join(',')}]`;
    })
    .join('');
}
