/** JSON values, canonical JSON (RFC 8785) and JSON pointers (RFC 6901). */

export type JsonPrimitive = string | number | boolean | null;
export type JsonArray = JsonValue[];
export interface JsonObject {
  [key: string]: JsonValue | undefined;
}
export type JsonValue = JsonPrimitive | JsonArray | JsonObject;

/** True for a plain JSON object (not an array, not null). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The objects of a list; none of what is no list. For reading what may have any shape. */
export const objectsOf = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** The object, or an empty one of what is none. */
export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {});

function canonicalString(text: string): string {
  if (!text.isWellFormed()) throw new TypeError('canonical JSON: a string holds a lone surrogate');
  return JSON.stringify(text);
}

function canonicalNumber(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError(`canonical JSON: ${value} is not a finite number`);
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    throw new TypeError(`canonical JSON: the integer ${value} is beyond 2^53-1`);
  return JSON.stringify(value);
}

/**
 * Text of `value` by RFC 8785: members sorted by UTF-16 code units, shortest number forms, no white space.
 * Members that are null or undefined are left out, since an absent and a null field mean the same to Kubernetes.
 * @throws TypeError for a non-finite number, an integer beyond 2^53-1, or a lone surrogate.
 */
export function canonicalJson(value: JsonValue): string {
  return isCanonical(value) ? JSON.stringify(value) : written(value);
}

/**
 * Whether the engine's own writer, which is many times faster, gives the canonical text: members are in order, none is null,
 * and every number and string has a canonical form. What was canonical when it was read is.
 */
function isCanonical(value: JsonValue): boolean {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed();
    case 'number':
      return Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
    case 'boolean':
      return true;
    default:
  }
  if (value === null) return true;
  if (Array.isArray(value)) return value.every((item) => isCanonical(item ?? null));
  let before = '';
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (member === undefined) continue;
    if (member === null || key < before || !key.isWellFormed() || !isCanonical(member)) return false;
    before = key;
  }
  return true;
}

function written(value: JsonValue): string {
  if (value === null) return 'null';
  switch (typeof value) {
    case 'string':
      return canonicalString(value);
    case 'number':
      return canonicalNumber(value);
    case 'boolean':
      return value ? 'true' : 'false';
    default:
  }
  if (Array.isArray(value)) return `[${value.map((item) => written(item ?? null)).join(',')}]`;
  const members: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const member = value[key];
    if (member === null || member === undefined) continue;
    members.push(`${canonicalString(key)}:${written(member)}`);
  }
  return `{${members.join(',')}}`;
}

/** The value with every half of a character in its strings replaced (U+FFFD), as servers store them; the value itself where there is none. */
export function wellFormed<T extends JsonValue>(value: T): T;
export function wellFormed(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => wellFormed(item));
    return items.every((item, n) => item === value[n]) ? value : items;
  }
  const members = Object.entries(value).map(([key, member]): [string, JsonValue | undefined] => [
    key.toWellFormed(),
    member === undefined ? undefined : wellFormed(member),
  ]);
  return members.every(([key, member]) => Object.hasOwn(value, key) && member === value[key])
    ? value
    : Object.fromEntries(members);
}

/** A deep copy whose members are sorted and whose null and undefined members are gone. */
export function sortedCopy<T extends JsonValue>(value: T): T {
  return JSON.parse(canonicalJson(value)) as T;
}

/** True when both values have the same canonical form; a member that is null or undefined counts as absent. */
export function deepEqual(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined || a === null || b === null) return (a ?? null) === (b ?? null);
  if (typeof a !== 'object' || typeof b !== 'object') return false;
  if (Array.isArray(a) || Array.isArray(b))
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, n) => deepEqual(item, b[n]));
  let members = 0;
  for (const key of Object.keys(a)) {
    const member = a[key];
    if (member === undefined || member === null) continue;
    if (!Object.hasOwn(b, key) || !deepEqual(member, b[key])) return false;
    members += 1;
  }
  for (const key of Object.keys(b)) if (b[key] !== undefined && b[key] !== null) members -= 1;
  return members === 0;
}

/** The reference tokens of a JSON pointer. @throws TypeError when it does not start with '/'. */
export function pointerTokens(pointer: string): string[] {
  if (pointer === '') return [];
  if (!pointer.startsWith('/')) throw new TypeError(`JSON pointer '${pointer}' does not start with '/'`);
  return pointer
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The JSON pointer of a path. */
export function toPointer(path: readonly (string | number)[]): string {
  return path.map((token) => `/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function step(value: JsonValue | undefined, token: string): JsonValue | undefined {
  if (Array.isArray(value)) return /^(0|[1-9][0-9]*)$/.test(token) ? value[Number(token)] : undefined;
  return isObject(value) && Object.hasOwn(value, token) ? value[token] : undefined;
}

/** The value at `pointer`, or undefined. */
export function getAt(value: JsonValue, pointer: string): JsonValue | undefined {
  let here: JsonValue | undefined = value;
  for (const token of pointerTokens(pointer)) here = step(here, token);
  return here;
}

/** Sets an own member whatever its name; assigning would run the setter of `__proto__`. */
function setMember(object: JsonObject, key: string, value: JsonValue): void {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

/**
 * A copy of `value` in which `pointer` holds `next` (undefined removes a member). Missing objects on the way are made;
 * an array index must exist or be the array's length.
 * @throws TypeError when the way leads through a primitive or past an array's end.
 */
export function setAt(value: JsonValue, pointer: string, next: JsonValue | undefined): JsonValue {
  const [head, ...rest] = pointerTokens(pointer);
  if (head === undefined) {
    if (next === undefined) throw new TypeError('the root of a document cannot be removed');
    return next;
  }
  const tail = toPointer(rest);
  if (Array.isArray(value)) {
    const index = Number(head);
    if (!/^(0|[1-9][0-9]*)$/.test(head) || index > value.length) throw new TypeError(`no index '${head}' in an array`);
    const copy = [...value];
    if (rest.length === 0 && next === undefined) copy.splice(index, 1);
    else copy[index] = setAt(copy[index] ?? {}, tail, next);
    return copy;
  }
  if (!isObject(value)) throw new TypeError(`JSON pointer '${pointer}' leads through a primitive`);
  const copy: JsonObject = { ...value };
  if (rest.length === 0 && next === undefined) delete copy[head];
  else setMember(copy, head, setAt((Object.hasOwn(copy, head) ? copy[head] : undefined) ?? {}, tail, next));
  return copy;
}
