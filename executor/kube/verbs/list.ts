import { isObject, type JsonObject } from '../../../constructs/lib/json.ts';
import type { CallOptions } from '../call.ts';
import { call } from '../call.ts';
import { parseObject } from '../classify.ts';
import { collectionPath, type Resource } from '../discovery.ts';
import type { ListOutcome, Rejection, Subject } from '../outcome.ts';
import type { KindRef, KubeObject } from '../types.ts';
import { isResource, refusal, type VerbContext } from './context.ts';

/** Which objects: of one kind, in one namespace or all, narrowed by selectors. `name` selects a single object. */
export interface Selection extends KindRef {
  readonly namespace?: string;
  readonly name?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface ListOptions extends CallOptions {
  /** Asks for metadata alone; the items carry nothing else. */
  readonly metadataOnly?: boolean;
  /** Applied to each item as its page arrives: no more than a page of whole objects is held at once. */
  readonly transform?: (object: KubeObject) => KubeObject;
}

/** An aggregated API that can not answer with metadata alone answers with whole objects; {@link taken} drops the rest. */
const metadataList = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';

const pageSize = 500;

/** Words for messages: `ConfigMap in demo (app=x)`. */
export function describeSelection(selection: Selection): string {
  const { kind, namespace, name, labelSelector } = selection;
  const place = namespace === undefined ? '' : ` in ${namespace}`;
  return `${kind}${name === undefined ? '' : ` ${name}`}${place}${labelSelector === undefined ? '' : ` (${labelSelector})`}`;
}

/** Query of a selection, for list and watch alike. */
export function selectionQuery({ name, labelSelector, fieldSelector }: Selection): Record<string, string | undefined> {
  const byName = name === undefined ? undefined : `metadata.name=${name}`;
  const fields = [byName, fieldSelector].filter((part) => part !== undefined);
  return { labelSelector, fieldSelector: fields.length > 0 ? fields.join(',') : undefined };
}

/** Path of a selection; `invalid` when it names a namespace of a cluster-scoped kind. */
export async function locateSelection(
  context: VerbContext,
  subject: Subject,
  selection: Selection,
  options: CallOptions,
): Promise<Resource | Rejection> {
  const found = await context.discovery.resource(selection, options);
  if (found.type !== 'resource') return found;
  if (!found.resource.namespaced && selection.namespace !== undefined)
    return { type: 'invalid', message: `${subject.what}: ${selection.kind} has no namespaces`, causes: [] };
  return found.resource;
}

/** All objects of a selection, in pages of 500, as of one resourceVersion. A list that expired half way starts once more. */
export async function list(
  context: VerbContext,
  selection: Selection,
  options: ListOptions = {},
): Promise<ListOutcome> {
  const subject: Subject = {
    what: `list of ${describeSelection(selection)}`,
    ref: { ...selection, name: selection.name ?? '' },
  };
  const resource = await locateSelection(context, subject, selection, options);
  if (!isResource(resource)) return resource;
  const first = await pages(context, subject, resource, selection, options);
  return first.type === 'expired' ? pages(context, subject, resource, selection, options) : first;
}

async function pages(
  context: VerbContext,
  subject: Subject,
  resource: Resource,
  selection: Selection,
  options: ListOptions,
): Promise<ListOutcome> {
  const headers: Record<string, string> = options.metadataOnly === true ? { accept: metadataList } : {};
  const items: KubeObject[] = [];
  let next: string | undefined;
  for (;;) {
    const query = { ...selectionQuery(selection), limit: String(pageSize), continue: next };
    const answer = await call(
      context.caller,
      { method: 'GET', path: collectionPath(resource, selection.namespace), query, headers },
      options,
    );
    if (answer.type === 'answer' && answer.status === 410)
      return { type: 'expired', message: `${subject.what}: 410 the list expired between two pages` };
    const page = answer.type === 'answer' && answer.status === 200 ? parseObject(answer.text) : undefined;
    if (page === undefined) return refusal(context, subject, answer, options);
    items.push(...itemsOf(page).map((item) => taken(asObject(item, resource), options)));
    const metadata = isObject(page.metadata) ? page.metadata : {};
    next = typeof metadata.continue === 'string' && metadata.continue !== '' ? metadata.continue : undefined;
    if (next === undefined) return { type: 'listed', items, resourceVersion: String(metadata.resourceVersion ?? '') };
  }
}

function taken(object: KubeObject, { transform, metadataOnly }: ListOptions): KubeObject {
  const { apiVersion, kind, metadata } = object;
  const asked = metadataOnly === true ? { apiVersion, kind, metadata } : object;
  return transform?.(asked) ?? asked;
}

function itemsOf(page: JsonObject): JsonObject[] {
  return Array.isArray(page.items) ? page.items.filter(isObject) : [];
}

/** Items of a list carry neither apiVersion nor kind. */
function asObject(item: JsonObject, { apiVersion, kind }: Resource): KubeObject {
  const metadata = isObject(item.metadata) ? item.metadata : {};
  return { ...item, apiVersion, kind, metadata } as KubeObject;
}
