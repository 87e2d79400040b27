/** What a request asks of the API server, read from its method, URL, headers and body. */
export interface KubeRequest {
  readonly method: string;
  readonly verb: Verb;
  /** The path without the query. */
  readonly path: string;
  /** API group, empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural resource name; empty for paths that are no resource (`/readyz`, `/openapi/v3`). */
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly fieldManager?: string;
  /** True for a request that changes the cluster; a dry run and a review (a POST that stores nothing) do not. */
  readonly mutating: boolean;
  /** The parsed JSON body of a request that carries one. */
  readonly body?: unknown;
}

export type Verb =
  | 'get'
  | 'list'
  | 'watch'
  | 'create'
  | 'update'
  | 'apply'
  | 'patch'
  | 'delete'
  | 'deletecollection'
  | 'other';

interface Target {
  group: string;
  version: string;
  resource: string;
  namespace?: string;
  name?: string;
  subresource?: string;
}

const reviewGroups = new Set(['authorization.k8s.io', 'authentication.k8s.io']);

/** Reads a request as the API server would. `url` may be absolute or start with the path. */
export function describeRequest(
  method: string,
  url: string,
  contentType = '',
  body?: string | Uint8Array,
): KubeRequest {
  const { pathname, searchParams } = new URL(url, 'http://api.invalid');
  const target = readPath(pathname);
  const verb = readVerb(method.toUpperCase(), target, searchParams, contentType);
  const parsed = body === undefined || body.length === 0 ? undefined : parseBody(body);
  const dryRun = searchParams.get('dryRun') === 'All';
  const fieldManager = searchParams.get('fieldManager');
  const reading = verb === 'get' || verb === 'list' || verb === 'watch' || verb === 'other';
  const review = reviewGroups.has(target.group) || target.subresource === 'token';
  return {
    method: method.toUpperCase(),
    verb,
    path: pathname,
    ...target,
    dryRun,
    force: searchParams.get('force') === 'true',
    ...(fieldManager === null ? {} : { fieldManager }),
    mutating: !reading && !dryRun && !review,
    ...(parsed === undefined ? {} : { body: parsed }),
  };
}

function parseBody(body: string | Uint8Array): unknown {
  const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8');
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function readPath(path: string): Target {
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map(decodeURIComponent);
  const core = parts[0] === 'api' && parts.length >= 3;
  const grouped = parts[0] === 'apis' && parts.length >= 4;
  if (!core && !grouped) return { group: '', version: '', resource: '' };
  const group = core ? '' : (parts[1] ?? '');
  const version = (core ? parts[1] : parts[2]) ?? '';
  const rest = parts.slice(core ? 2 : 3);
  const namespaced = rest[0] === 'namespaces' && rest.length >= 3 && rest[2] !== 'status' && rest[2] !== 'finalize';
  const [resource = '', name, subresource] = namespaced ? rest.slice(2) : rest;
  return {
    group,
    version,
    resource,
    ...(namespaced && rest[1] !== undefined ? { namespace: rest[1] } : {}),
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
  };
}

function readVerb(method: string, target: Target, query: URLSearchParams, contentType: string): Verb {
  if (target.resource === '') return 'other';
  switch (method) {
    case 'GET': {
      const watch = query.get('watch');
      if (watch === 'true' || watch === '1') return 'watch';
      return target.name === undefined ? 'list' : 'get';
    }
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return contentType.includes('apply-patch') ? 'apply' : 'patch';
    case 'DELETE':
      return target.name === undefined ? 'deletecollection' : 'delete';
    default:
      return 'other';
  }
}
