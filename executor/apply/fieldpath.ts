/** Paths of fields as an apply conflict names them (`.spec.ports[port=80,protocol="TCP"].nodePort`) and as pointers. */
import {
  isObject,
  type JsonObject,
  type JsonValue,
  pointerTokens,
  setAt,
  toPointer,
} from '../../constructs/lib/json.ts';

type Step =
  | { readonly member: string }
  | { readonly keys: JsonObject }
  | { readonly index: number }
  | { readonly value: JsonValue };

/** The value of a key in `[name="x",port=80]`: JSON, or a bare word. */
function readValue(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

const steps = /\.([^.[\]]+)|\[((?:"(?:[^"\\]|\\.)*"|[^\]"])*)\]/gy;

function readBracket(inner: string): Step {
  if (inner.startsWith('=')) return { value: readValue(inner.slice(1)) };
  if (/^\d+$/.test(inner)) return { index: Number(inner) };
  const pairs = [...inner.matchAll(/([^=,]+)=("(?:[^"\\]|\\.)*"|[^,]*)(?:,|$)/g)];
  return { keys: Object.fromEntries(pairs.map(([, key = '', value = '']) => [key.trim(), readValue(value)])) };
}

/** The steps of a field path, or undefined when the text is not one. */
export function parseFieldPath(path: string): Step[] | undefined {
  const found: Step[] = [];
  let end = 0;
  for (const match of path.matchAll(steps)) {
    end = match.index + match[0].length;
    found.push(match[1] === undefined ? readBracket(match[2] ?? '') : { member: match[1] });
  }
  return end === path.length && found.length > 0 ? found : undefined;
}

/** Names with dots (annotations, labels) run over several steps of the text: the longest member that exists is taken. */
function member(value: JsonObject, path: readonly Step[], at: number): { name: string; next: number } | undefined {
  let name = '';
  let best: { name: string; next: number } | undefined;
  for (let i = at; i < path.length; i += 1) {
    const step = path[i];
    if (step === undefined || !('member' in step)) break;
    name = name === '' ? step.member : `${name}.${step.member}`;
    if (Object.hasOwn(value, name)) best = { name, next: i + 1 };
  }
  return best;
}

function element(value: readonly JsonValue[], step: Step): number {
  if ('index' in step) return step.index;
  if ('value' in step) return value.indexOf(step.value);
  if (!('keys' in step)) return -1;
  return value.findIndex(
    (item) => isObject(item) && Object.entries(step.keys).every(([key, wanted]) => item[key] === wanted),
  );
}

/** The JSON pointer in `object` of a field path; undefined when the object has no such field. */
export function pointerOf(object: JsonValue, path: string): string | undefined {
  const parsed = parseFieldPath(path);
  if (parsed === undefined) return undefined;
  const tokens: (string | number)[] = [];
  let here: JsonValue | undefined = object;
  for (let at = 0; at < parsed.length; ) {
    const step = parsed[at];
    if (step === undefined || here === undefined) return undefined;
    if (isObject(here)) {
      const found = member(here, parsed, at);
      if (found === undefined) return undefined;
      tokens.push(found.name);
      here = here[found.name];
      at = found.next;
    } else if (Array.isArray(here)) {
      const index = element(here, step);
      if (index < 0 || index >= here.length) return undefined;
      tokens.push(index);
      here = here[index];
      at += 1;
    } else return undefined;
  }
  return toPointer(tokens);
}

/** True when `pointer` is `at`, or lies below it. */
export function isWithin(pointer: string, at: string): boolean {
  return pointer === at || pointer.startsWith(at === '' ? '/' : `${at}/`);
}

/** A copy without the fields at `pointers`; array elements are removed from the highest index down. */
export function without(object: JsonObject, pointers: readonly string[]): JsonObject {
  const deepestFirst = [...new Set(pointers)].sort((a, b) => compareTokens(pointerTokens(b), pointerTokens(a)));
  let copy: JsonValue = object;
  for (const pointer of deepestFirst) copy = setAt(copy, pointer, undefined);
  return isObject(copy) ? copy : object;
}

function compareTokens(a: readonly string[], b: readonly string[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i += 1) {
    const [left = '', right = ''] = [a[i], b[i]];
    if (left === right) continue;
    const numeric = /^\d+$/.test(left) && /^\d+$/.test(right);
    return numeric ? Number(left) - Number(right) : left < right ? -1 : 1;
  }
  return a.length - b.length;
}
