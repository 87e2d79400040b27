import { type Digest, sha256Digest } from '../../constructs/lib/digest.ts';
import { imageManifestType } from './artifacts.ts';

async function expectStatus(answer: Response, status: number, what: string): Promise<Response> {
  if (answer.status === status) return answer;
  throw new Error(`${what}: the registry answered ${answer.status}: ${(await answer.text()).slice(0, 200)}`);
}

/** Stores a blob in a registry that speaks plain HTTP, by the distribution specification. */
export async function pushBlob(host: string, repository: string, bytes: Uint8Array): Promise<Digest> {
  const digest = sha256Digest(bytes);
  const base = `http://${host}/v2/${repository}/blobs/uploads/`;
  const start = await expectStatus(await fetch(base, { method: 'POST' }), 202, 'begin of an upload');
  const upload = new URL(start.headers.get('location') ?? '', base);
  upload.searchParams.set('digest', digest);
  await expectStatus(await fetch(upload, { method: 'PUT', body: Buffer.from(bytes) }), 201, 'end of an upload');
  return digest;
}

export interface Artifact {
  readonly config: object;
  readonly layers: readonly { readonly mediaType: string; readonly digest: string; readonly size: number }[];
}

/** Stores the configuration and then the manifest of an artifact whose layers are there; answers the manifest's digest. */
export async function pushArtifact(host: string, repository: string, tag: string, artifact: Artifact): Promise<Digest> {
  const config = Buffer.from(JSON.stringify(artifact.config));
  const descriptor = {
    mediaType: 'application/vnd.oci.image.config.v1+json',
    digest: await pushBlob(host, repository, config),
    size: config.length,
  };
  const content = { schemaVersion: 2, mediaType: imageManifestType, config: descriptor, layers: artifact.layers };
  const body = Buffer.from(JSON.stringify(content));
  const url = `http://${host}/v2/${repository}/manifests/${tag}`;
  await expectStatus(
    await fetch(url, { method: 'PUT', headers: { 'content-type': imageManifestType }, body }),
    201,
    'manifest',
  );
  return sha256Digest(body);
}
