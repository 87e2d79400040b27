import { Environment } from '@marcbachmann/cel-js';
import { canonicalJson, isObject, type JsonObject, type JsonValue } from '../lib/json.ts';
import type { CelRule } from './cel.ts';
import type { StructuralSchema } from './crd.ts';
import type { Finding, Path } from './structure.ts';

/**
 * CEL rules of a schema, evaluated offline with the outcome that the API server has. Values are converted by their
 * schema: integers to BigInt, times to dates, and lists that are sets or maps to a fixed order, since their order
 * means nothing to the server either.
 */

type Program = (variables: Record<string, unknown>) => unknown;

export interface CelChecker {
  /**
   * @param old the object before the change; rules about changes are skipped without it.
   * @param broken tells whether something at or below a path is already known to be wrong; rules there are skipped.
   */
  check(value: JsonValue, old: JsonValue | undefined, broken: (path: Path) => boolean): Finding[];
}

interface Node {
  readonly schema: StructuralSchema;
  readonly rules: readonly { rule: CelRule; program: Program; transition: boolean }[];
  readonly members: ReadonlyMap<string, Node>;
  readonly values: Node | undefined;
  readonly items: Node | undefined;
}

/**
 * Compiles the rules of a schema once.
 * @throws Error when a rule does not parse; a rule of ours that does not is a defect of ours.
 */
export function compileRules(schema: StructuralSchema): CelChecker {
  const environment = new Environment({ unlistedVariablesAreDyn: true });
  const root = compileNode(schema, environment);
  return {
    check: (value, old, broken) => (root === undefined ? [] : checkNode(root, value, old, [], broken)),
  };
}

function compileNode(schema: StructuralSchema, environment: Environment): Node | undefined {
  const rules = (schema['x-kubernetes-validations'] ?? []).map((rule) => ({
    rule,
    program: environment.parse(rule.rule) as unknown as Program,
    transition: /\boldSelf\b/.test(rule.rule),
  }));
  const members = new Map<string, Node>();
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    const node = compileNode(child, environment);
    if (node !== undefined) members.set(name, node);
  }
  const { items: item, additionalProperties: extra } = schema;
  const values = typeof extra === 'object' ? compileNode(extra, environment) : undefined;
  const items = item === undefined ? undefined : compileNode(item, environment);
  if (rules.length === 0 && members.size === 0 && values === undefined && items === undefined) return undefined;
  return { schema, rules, members, values, items };
}

function checkNode(
  node: Node,
  value: JsonValue,
  old: JsonValue | undefined,
  path: Path,
  broken: (path: Path) => boolean,
): Finding[] {
  const findings = broken(path) ? [] : runRules(node, value, old, path);
  if (Array.isArray(value)) {
    const { items } = node;
    if (items === undefined) return findings;
    const before = Array.isArray(old) ? old : [];
    return [
      ...findings,
      ...value.flatMap((item, n) => checkNode(items, item, partner(node.schema, item, before), [...path, n], broken)),
    ];
  }
  if (!isObject(value)) return findings;
  const before = isObject(old) ? old : {};
  for (const [name, member] of Object.entries(value)) {
    const inner = node.members.get(name) ?? node.values;
    if (inner === undefined || member === undefined) continue;
    findings.push(...checkNode(inner, member, before[name], [...path, name], broken));
  }
  return findings;
}

/** The item of an old list that a new one continues; only the items of list maps have one. */
function partner(schema: StructuralSchema, item: JsonValue, before: readonly JsonValue[]): JsonValue | undefined {
  const keys = schema['x-kubernetes-list-map-keys'];
  if (keys === undefined || !isObject(item)) return undefined;
  return before.find((one) => isObject(one) && keys.every((key) => one[key] === item[key]));
}

function runRules(node: Node, value: JsonValue, old: JsonValue | undefined, path: Path): Finding[] {
  const variables: Record<string, unknown> = { self: toCel(node.schema, value) };
  if (old !== undefined) variables.oldSelf = toCel(node.schema, old);
  return node.rules.flatMap(({ rule, program, transition }) => {
    if (transition && old === undefined) return [];
    try {
      if (program(variables) === true) return [];
      return [{ reason: 'RuleViolated', message: rule.message, path }];
    } catch (error) {
      const text = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
      return [{ reason: 'RuleViolated', message: `${rule.message} (the rule could not be evaluated: ${text})`, path }];
    }
  });
}

const reserved = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

/** Name of a field inside a rule. */
const celName = (name: string): string => {
  if (reserved.has(name)) return `__${name}__`;
  return name
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__');
};

function toCel(schema: StructuralSchema, value: JsonValue): unknown {
  if (typeof value === 'number') return schema.type === 'integer' ? BigInt(value) : value;
  if (typeof value === 'string') return schema.format === 'date-time' ? new Date(value) : value;
  if (Array.isArray(value)) {
    const { items } = schema;
    return ordered(schema, value).map((item) => (items === undefined ? item : toCel(items, item)));
  }
  if (!isObject(value)) return value;
  return objectToCel(schema, value);
}

function objectToCel(schema: StructuralSchema, value: JsonObject): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  const extra = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const inner = schema.properties?.[name];
    if (inner !== undefined) result[celName(name)] = toCel(inner, member);
    else if (extra !== undefined) result[name] = toCel(extra, member);
    else if (schema.properties === undefined) result[name] = member;
  }
  return result;
}

function ordered(schema: StructuralSchema, value: readonly JsonValue[]): readonly JsonValue[] {
  const type = schema['x-kubernetes-list-type'];
  if (type !== 'map' && type !== 'set') return value;
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const keyOf = (item: JsonValue): string =>
    canonicalJson(type === 'map' && isObject(item) ? keys.map((k) => item[k] ?? null) : item);
  return value.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}
