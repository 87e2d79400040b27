import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { BuiltImage, ImagePart } from './build.ts';

export interface PushTarget {
  /** `host:port` of a registry that speaks plain HTTP, as the local cluster's does. */
  readonly registry: string;
  readonly repository: string;
  readonly tag?: string;
  readonly signal?: AbortSignal;
}

/** Milliseconds one request may take. */
const requestLimitMs = 120_000;

/**
 * Pushes an image and answers its pinned reference `registry/repository@sha256:...`. Blobs that the registry has are
 * not sent again. @throws Error naming the request and the registry's answer.
 */
export async function pushImage(image: BuiltImage, target: PushTarget): Promise<string> {
  const base = `http://${target.registry}/v2/${target.repository}`;
  for (const blob of image.blobs) await pushBlob(base, image.layout, blob, target.signal);
  await putManifest(base, image.layout, image.manifest, image.manifest.digest, target.signal);
  await putManifest(base, image.layout, image.index, image.digest, target.signal);
  if (target.tag !== undefined) await putManifest(base, image.layout, image.index, target.tag, target.signal);
  return imageReference(image, target);
}

/** The pinned reference under which an image is found once it is pushed. */
export function imageReference(image: BuiltImage, target: Pick<PushTarget, 'registry' | 'repository'>): string {
  return `${target.registry}/${target.repository}@${image.digest}`;
}

/** True when the registry answers its version check. */
export async function registryAnswers(registry: string): Promise<boolean> {
  try {
    const answer = await fetch(`http://${registry}/v2/`, { signal: AbortSignal.timeout(2_000) });
    await answer.body?.cancel();
    return answer.ok;
  } catch {
    return false;
  }
}

async function pushBlob(base: string, layout: string, blob: ImagePart, signal?: AbortSignal): Promise<void> {
  const head = await request('HEAD', `${base}/blobs/${blob.digest}`, {}, signal);
  if (head.ok) return;
  if (head.status !== 404) throw await refused('HEAD', head);
  const start = await request('POST', `${base}/blobs/uploads/`, {}, signal);
  const location = start.headers.get('location');
  if (start.status !== 202 || location === null) throw await refused('POST', start);
  const upload = new URL(location, base);
  upload.searchParams.set('digest', blob.digest);
  const body = Readable.toWeb(createReadStream(blobFile(layout, blob))) as ReadableStream<Uint8Array>;
  const headers = { 'content-type': 'application/octet-stream', 'content-length': String(blob.size) };
  const put = await request('PUT', upload.href, { headers, body, duplex: 'half' }, signal);
  if (put.status !== 201) throw await refused('PUT', put);
}

async function putManifest(
  base: string,
  layout: string,
  part: ImagePart,
  name: string,
  signal?: AbortSignal,
): Promise<void> {
  const body = await readFile(blobFile(layout, part));
  const headers = { 'content-type': part.mediaType };
  const answer = await request('PUT', `${base}/manifests/${name}`, { headers, body }, signal);
  if (answer.status !== 201) throw await refused('PUT', answer);
}

function blobFile(layout: string, part: ImagePart): string {
  return join(layout, 'blobs', 'sha256', part.digest.slice('sha256:'.length));
}

async function request(method: string, url: string, init: RequestInit, signal?: AbortSignal): Promise<Response> {
  const limit = AbortSignal.timeout(requestLimitMs);
  const answer = await fetch(url, {
    ...init,
    method,
    signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
  });
  if (answer.ok) await answer.body?.cancel();
  return answer;
}

async function refused(method: string, answer: Response): Promise<Error> {
  const text = await answer.text();
  return new Error(`${method} ${answer.url}: the registry answered ${answer.status}: ${text.slice(0, 500)}`);
}
