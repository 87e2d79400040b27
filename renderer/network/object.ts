import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import { describeObject, groupOf, type ObjectIdentity, objectId } from '../../constructs/lib/names.ts';

/** A rendered Kubernetes object whose identity has been checked. */
export interface ChartObject extends ObjectIdentity {
  readonly body: JsonObject;
}

/** The member `key` of an object as an object, or an empty one. */
export function member(value: JsonValue | undefined, key: string): JsonObject {
  const found = isObject(value) ? value[key] : undefined;
  return isObject(found) ? found : {};
}

/** The members of `value` that are strings. */
export function stringMap(value: JsonValue | undefined): Record<string, string> {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** The items of an array of objects. */
export function items(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Reads the identity of a rendered document; undefined when it has none. */
export function toChartObject(body: JsonValue): ChartObject | undefined {
  if (!isObject(body)) return undefined;
  const { apiVersion, kind } = body;
  const { name, namespace } = member(body, 'metadata');
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || typeof name !== 'string') return undefined;
  return { apiVersion, kind, name, ...(typeof namespace === 'string' ? { namespace } : {}), body };
}

/** Annotations of an object. */
export const annotationsOf = (object: ChartObject): Record<string, string> =>
  stringMap(member(object.body, 'metadata').annotations);

/** The same object with another body. */
export const withBody = (object: ChartObject, body: JsonObject): ChartObject => ({ ...object, body });

/** `group/Kind`, the core group being empty. */
export const groupKindOf = (object: ObjectIdentity): string => `${groupOf(object.apiVersion)}/${object.kind}`;

export { describeObject, objectId };

/** The pod template of a workload, or undefined for other kinds. */
export function podSpecOf(object: ChartObject): JsonObject | undefined {
  const template = member(object.body, 'spec').template;
  return isObject(template) && isObject(template.spec) ? template.spec : undefined;
}

/** The same workload with another pod template's spec. */
export function withPodSpec(object: ChartObject, podSpec: JsonObject): ChartObject {
  const spec = member(object.body, 'spec');
  const template = member(spec, 'template');
  return withBody(object, { ...object.body, spec: { ...spec, template: { ...template, spec: podSpec } } });
}

/** All containers of a pod, init containers included. */
function containersOf(podSpec: JsonObject): JsonObject[] {
  return [...items(podSpec.initContainers), ...items(podSpec.containers)];
}

/** The values of environment variable `name` in all containers of a workload. */
export function envValues(object: ChartObject, name: string): string[] {
  const podSpec = podSpecOf(object);
  if (podSpec === undefined) return [];
  return containersOf(podSpec)
    .flatMap((container) => items(container.env))
    .filter((variable) => variable.name === name)
    .map((variable) => (typeof variable.value === 'string' ? variable.value : ''));
}
