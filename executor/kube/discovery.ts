/** Which path serves a kind, and what it can do there. Cached per API version; absence is never cached. */
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { type Caller, type CallOptions, call } from './call.ts';
import { classify, parseObject, unanswered } from './classify.ts';
import type { KindAbsent, Rejection } from './outcome.ts';
import type { KindRef, ObjectRef } from './types.ts';

/** How one kind is served. */
export interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  /** True when `/status` is served apart. */
  readonly statusSubresource: boolean;
}

export type ResourceOutcome = { readonly type: 'resource'; readonly resource: Resource } | Rejection;

/** `/api/v1` or `/apis/<group>/<version>`. */
function versionPath(apiVersion: string): string {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/', 2) : [undefined, apiVersion];
  const encoded = encodeURIComponent(version ?? '');
  return group === undefined ? `/api/${encoded}` : `/apis/${encodeURIComponent(group)}/${encoded}`;
}

/** Path of a collection; without a namespace that of all namespaces, or of a cluster-scoped kind. */
export function collectionPath(resource: Resource, namespace: string | undefined): string {
  const scope = resource.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${versionPath(resource.apiVersion)}${scope}/${resource.plural}`;
}

/** Path of an object, or of one of its subresources. */
export function objectPath(resource: Resource, ref: ObjectRef, subresource?: string): string {
  const own = `${collectionPath(resource, ref.namespace)}/${encodeURIComponent(ref.name)}`;
  return subresource === undefined ? own : `${own}/${subresource}`;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Resources by kind, from an `APIResourceList`. */
export function readResourceList(apiVersion: string, list: JsonObject): Map<string, Resource> {
  const entries = (Array.isArray(list.resources) ? list.resources : []).filter(isObject);
  const names = new Set(entries.map((entry) => text(entry.name)));
  const byKind = new Map<string, Resource>();
  for (const entry of entries) {
    const plural = text(entry.name);
    if (plural === '' || plural.includes('/')) continue;
    byKind.set(text(entry.kind), {
      apiVersion,
      kind: text(entry.kind),
      plural,
      namespaced: entry.namespaced === true,
      verbs: Array.isArray(entry.verbs) ? entry.verbs.map(text) : [],
      statusSubresource: names.has(`${plural}/status`),
    });
  }
  return byKind;
}

interface Fetched {
  readonly type: 'kinds';
  readonly kinds: ReadonlyMap<string, Resource>;
}

/** What the API server serves. One per client. */
export class Discovery {
  readonly #caller: Caller;
  readonly #known = new Map<string, ReadonlyMap<string, Resource>>();
  readonly #fetching = new Map<string, Promise<Fetched | Rejection>>();

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * How a kind is served. `kindAbsent` is always the word of the API server now: a kind that the cache lacks is asked for
   * again first, so that a CRD is usable as soon as it is established.
   */
  async resource(wanted: KindRef, options: CallOptions = {}): Promise<ResourceOutcome> {
    const known = this.#known.get(wanted.apiVersion)?.get(wanted.kind);
    if (known !== undefined) return { type: 'resource', resource: known };
    const fetched = await this.#fetch(wanted.apiVersion, options);
    if (fetched.type !== 'kinds') return fetched;
    const found = fetched.kinds.get(wanted.kind);
    return found === undefined ? absent(wanted) : { type: 'resource', resource: found };
  }

  /** Forgets one API version (after a 404 of a collection), or everything. */
  drop(apiVersion?: string): void {
    if (apiVersion === undefined) this.#known.clear();
    else this.#known.delete(apiVersion);
  }

  /** Forgets and asks again. */
  refresh(wanted: KindRef, options: CallOptions = {}): Promise<ResourceOutcome> {
    this.drop(wanted.apiVersion);
    return this.resource(wanted, options);
  }

  /** Callers that wait for the same version share one request, and the abort of one of them harms no other. */
  async #fetch(apiVersion: string, options: CallOptions): Promise<Fetched | Rejection> {
    options.signal?.throwIfAborted();
    let fetching = this.#fetching.get(apiVersion);
    if (fetching === undefined) {
      const { signal: _, ...shared } = options;
      fetching = this.#ask(apiVersion, shared).finally(() => this.#fetching.delete(apiVersion));
      this.#fetching.set(apiVersion, fetching);
    }
    return options.signal === undefined ? fetching : untilAborted(fetching, options.signal);
  }

  async #ask(apiVersion: string, options: CallOptions): Promise<Fetched | Rejection> {
    const subject = { what: `discovery of ${apiVersion}` };
    const request = { method: 'GET', path: versionPath(apiVersion), query: {}, headers: {} } as const;
    // Past the limiter: whoever waits for it may hold a slot's worth of work, or be a Lease.
    const answer = await call(this.#caller, request, options, false);
    if (answer.type === 'none') return unanswered(subject, answer);
    if (answer.status === 404) return { type: 'kinds', kinds: new Map() };
    const list = answer.status === 200 ? parseObject(answer.text) : undefined;
    if (list === undefined) return classify(subject, answer, this.#caller.clock.now());
    const kinds = readResourceList(apiVersion, list);
    this.#known.set(apiVersion, kinds);
    return { type: 'kinds', kinds };
  }
}

function absent({ apiVersion, kind }: KindRef): KindAbsent {
  return { type: 'kindAbsent', apiVersion, kind, message: `the API server serves no kind ${kind} in ${apiVersion}` };
}

/** The promise's answer, or the signal's reason as soon as it aborts; the promise itself goes on. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const give = (): void => reject(signal.reason);
    signal.addEventListener('abort', give, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', give));
  });
}
