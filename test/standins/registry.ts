import type { ServerResponse } from 'node:http';
import { type Digest, sha256Digest } from '../../constructs/lib/digest.ts';
import { type SeenRequest, type ServerOptions, type StandInServer, startServer } from './httpserver.ts';

/** How the registry identifies callers. `bearer`: it sends them to its token service, which is part of it. */
export interface RegistryAuth {
  readonly kind: 'basic' | 'bearer';
  readonly username: string;
  readonly password: string;
  /** Accepted as `refresh_token` at the token service. */
  readonly identityToken?: string;
}

/** Faults, decided per request; each may answer by itself and return true. */
export type Fault = (request: SeenRequest, response: ServerResponse) => boolean;

export interface RegistryOptions extends ServerOptions {
  readonly auth?: RegistryAuth;
  readonly fault?: Fault;
}

export interface StandInRegistry extends StandInServer {
  putBlob(repository: string, bytes: Uint8Array): Digest;
  /** Stores a manifest under its digest and the tag. */
  putManifest(repository: string, tag: string, mediaType: string, content: object): Digest;
  /** `repository digest` of every blob that it holds. */
  blobs(): string[];
}

const issuedToken = 'stand-in.issued.token';

function basic(auth: RegistryAuth): string {
  return `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`;
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

function reply(response: ServerResponse, status: number, headers: Record<string, string> = {}): true {
  response.writeHead(status, headers);
  response.end();
  return true;
}

function answerToken(auth: RegistryAuth, request: SeenRequest, response: ServerResponse): void {
  const refresh = new URLSearchParams(request.body).get('refresh_token');
  const byToken = request.method === 'POST' && auth.identityToken !== undefined && refresh === auth.identityToken;
  if (byToken || request.headers.authorization === basic(auth))
    json(response, 200, { token: issuedToken, expires_in: 300 });
  else json(response, 401, { errors: [{ code: 'UNAUTHORIZED', message: 'wrong credentials' }] });
}

/** A registry in memory that serves pulls and pushes by the distribution specification, with or without authentication. */
export async function startRegistry(options: RegistryOptions = {}): Promise<StandInRegistry> {
  const blobs = new Map<string, Uint8Array>();
  const manifests = new Map<string, { mediaType: string; bytes: Buffer }>();
  const { auth } = options;
  let base = '';
  let begun = 0;

  function authorized(request: SeenRequest, response: ServerResponse): boolean {
    if (auth === undefined) return true;
    const wanted = auth.kind === 'basic' ? basic(auth) : `Bearer ${issuedToken}`;
    if (request.headers.authorization === wanted) return true;
    const challenge =
      auth.kind === 'basic' ? 'Basic realm="stand-in"' : `Bearer realm="${base}/token",service="stand-in",scope="pull"`;
    json(response, 401, { errors: [{ code: 'UNAUTHORIZED', message: 'log in' }] }, { 'www-authenticate': challenge });
    return false;
  }

  /** An upload: in one piece, begun by POST; a blob of another repository may be taken over. */
  function receiveBlob(request: SeenRequest, response: ServerResponse, url: URL): boolean {
    const [, repository, session] = /^\/v2\/(.+)\/blobs\/uploads\/([^/]*)$/.exec(url.pathname) ?? [];
    if (repository === undefined || session === undefined) return false;
    if (request.method === 'DELETE') return reply(response, 204);
    const at = `/v2/${repository}/blobs/uploads/${++begun}`;
    if (request.method === 'POST') {
      const [mount, from] = [url.searchParams.get('mount'), url.searchParams.get('from')];
      const known = blobs.get(`${from} ${mount}`);
      if (known === undefined) return reply(response, 202, { location: at });
      blobs.set(`${repository} ${mount}`, known);
      return reply(response, 201);
    }
    const digest = sha256Digest(request.bytes);
    if (digest === url.searchParams.get('digest')) {
      blobs.set(`${repository} ${digest}`, request.bytes);
      return reply(response, 201);
    }
    json(response, 400, { errors: [{ code: 'DIGEST_INVALID', message: 'other bytes' }] });
    return true;
  }

  function receiveManifest(request: SeenRequest, response: ServerResponse, url: URL): boolean {
    const [, repository, name] = /^\/v2\/(.+)\/manifests\/([^/]+)$/.exec(url.pathname) ?? [];
    if (repository === undefined || name === undefined || request.method !== 'PUT') return false;
    const mediaType = String(request.headers['content-type']);
    for (const key of [name, sha256Digest(request.bytes)])
      manifests.set(`${repository} ${key}`, { mediaType, bytes: request.bytes });
    return reply(response, 201);
  }

  const server = await startServer((request, response) => {
    const path = request.path.split('?')[0] ?? '';
    if (options.fault?.(request, response) === true) return;
    if (auth !== undefined && path === '/token') {
      answerToken(auth, request, response);
      return;
    }
    if (!authorized(request, response)) return;
    const url = new URL(request.path, 'http://registry');
    if (receiveBlob(request, response, url) || receiveManifest(request, response, url)) return;
    const [, repository, what, name] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(path) ?? [];
    const key = `${repository} ${name}`;
    const manifest = manifests.get(key);
    const blob = blobs.get(key);
    if (what === 'manifests' && manifest !== undefined) {
      response.writeHead(200, {
        'content-type': manifest.mediaType,
        'docker-content-digest': sha256Digest(manifest.bytes),
      });
      response.end(manifest.bytes);
    } else if (what === 'blobs' && blob !== undefined) {
      response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': String(blob.length) });
      response.end(blob);
    } else
      json(response, 404, {
        errors: [{ code: what === 'blobs' ? 'BLOB_UNKNOWN' : 'MANIFEST_UNKNOWN', message: 'not here' }],
      });
  }, options);
  base = server.url;

  return {
    ...server,
    blobs: () => [...blobs.keys()].sort(),
    putBlob(repository, bytes) {
      const digest = sha256Digest(bytes);
      blobs.set(`${repository} ${digest}`, bytes);
      return digest;
    },
    putManifest(repository, tag, mediaType, content) {
      const bytes = Buffer.from(JSON.stringify(content));
      const digest = sha256Digest(bytes);
      for (const name of [tag, digest]) manifests.set(`${repository} ${name}`, { mediaType, bytes });
      return digest;
    },
  };
}
