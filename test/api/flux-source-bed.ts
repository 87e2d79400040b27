import type { ServerResponse } from 'node:http';
import { payloadObjectId } from '../../constructs/api/payload.ts';
import { sha256Hex } from '../../constructs/lib/digest.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { TarFile } from '../../constructs/lib/tar.ts';
import { dumpYaml } from '../../constructs/lib/yaml.ts';
import type { FluxSourceRef } from '../../executor/source/flux-artifact.ts';
import type { SharedServer } from '../apiserver/shared.ts';
import { type StandInServer, startServer } from '../standins/httpserver.ts';
import { readDefinitions } from '../tools/definitions.ts';
import { until } from './kubeBed.ts';
import type { BuiltPayload } from './slice-payload.ts';
import { tarOf } from './tar-entries.ts';

const plurals: Readonly<Record<FluxSourceRef['kind'], string>> = {
  GitRepository: 'gitrepositories',
  OCIRepository: 'ocirepositories',
  Bucket: 'buckets',
  ExternalArtifact: 'externalartifacts',
};

const specs: Readonly<Record<FluxSourceRef['kind'], JsonObject>> = {
  GitRepository: { interval: '1m', url: 'https://git.example.com/rendered.git' },
  OCIRepository: { interval: '1m', url: 'oci://registry.example.com/rendered' },
  Bucket: { interval: '1m', bucketName: 'rendered', endpoint: 'minio.example.com' },
  ExternalArtifact: {},
};

/** Files of a payload as they stand below a folder of the rendered tree. */
export function treeFiles({ payload }: BuiltPayload, folder: string): TarFile[] {
  const { index, objects } = payload;
  const files = index.content.phases
    .flatMap((phase) => phase.objects)
    .map((entry) => ({
      path: `${folder}/${entry.yaml}`,
      bytes: Buffer.from(dumpYaml(objects.get(payloadObjectId(entry)) ?? {})),
    }));
  return [{ path: `${folder}/index.json`, bytes: Buffer.from(JSON.stringify(index, null, 2)) }, ...files];
}

/** An archive as source-controller stores it: it begins with an entry for the folder that everything is in. */
export const packed = (files: readonly TarFile[]): Promise<Uint8Array> =>
  tarOf([
    { name: '.', type: 'directory' },
    ...files.map(({ path, bytes }) => ({ name: path, body: Buffer.from(bytes) })),
  ]);

/** What the next request for a path is answered with. */
type Answer = (response: ServerResponse) => unknown;

export interface Offer {
  readonly revision: string;
  readonly bytes: Uint8Array;
  /** What the source states, where that is not the truth. */
  readonly digest?: string;
  readonly size?: number;
  readonly answer?: Answer;
  readonly ready?: 'True' | 'False';
  readonly observed?: number;
  readonly origin?: string;
}

/** A source object whose status the test writes, and the server behind its artifact. */
export interface FluxBed {
  readonly files: StandInServer;
  /** Writes the status of the source, and serves what it offers. */
  offer(ref: FluxSourceRef, offer: Offer): Promise<void>;
  close(): Promise<void>;
}

async function installSources(server: SharedServer): Promise<void> {
  for (const definition of await readDefinitions('source-controller')) {
    const { name } = definition.metadata as { name: string };
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`;
    await server.admin.expect('PATCH', path, {
      body: definition,
      type: 'application/apply-patch+yaml',
      query: { fieldManager: 'test' },
    });
    await until(`${name} to be established`, async () => {
      const { body } = await server.admin.expect('GET', path);
      return JSON.stringify(body.status?.conditions ?? []).includes('"reason":"InitialNamesAccepted"');
    });
  }
}

/** Flux's own definitions on the shared API server, and a file server in place of source-controller's. */
export async function fluxBed(server: SharedServer): Promise<FluxBed> {
  await installSources(server);
  const answers = new Map<string, Answer>();
  const files = await startServer(({ path }, response) => {
    const answer = answers.get(path);
    if (answer === undefined) return response.writeHead(404).end();
    return answer(response);
  });
  return {
    files,
    async offer(ref, offer) {
      const { kind, namespace, name } = ref;
      const path = `/apis/source.toolkit.fluxcd.io/v1/namespaces/${namespace}/${plurals[kind]}/${name}`;
      const apiVersion = 'source.toolkit.fluxcd.io/v1';
      const { body } = await server.admin.expect('PATCH', path, {
        body: { apiVersion, kind, metadata: { name, namespace }, spec: specs[kind] },
        type: 'application/apply-patch+yaml',
        query: { fieldManager: 'test' },
      });
      const place = `/${kind}/${namespace}/${encodeURIComponent(offer.revision)}.tar.gz`;
      answers.set(place, offer.answer ?? ((response) => response.end(offer.bytes)));
      const now = new Date().toISOString();
      const ready = {
        type: 'Ready',
        status: offer.ready ?? 'True',
        reason: offer.ready === 'False' ? 'GitOperationFailed' : 'Succeeded',
        message: offer.ready === 'False' ? 'no such branch' : 'stored artifact',
        lastTransitionTime: now,
      };
      await server.admin.expect('PATCH', `${path}/status`, {
        body: {
          status: {
            ...(kind === 'ExternalArtifact' ? {} : { observedGeneration: offer.observed ?? body.metadata.generation }),
            conditions: [{ ...ready, observedGeneration: body.metadata.generation }],
            artifact: {
              url: `${files.url}${place}`,
              path: place.slice(1),
              revision: offer.revision,
              digest: offer.digest ?? `sha256:${sha256Hex(offer.bytes)}`,
              size: offer.size ?? offer.bytes.byteLength,
              lastUpdateTime: now,
              ...(offer.origin === undefined
                ? {}
                : { metadata: { 'org.opencontainers.image.revision': offer.origin } }),
            },
          },
        },
        type: 'application/merge-patch+json',
        query: { fieldManager: 'source-controller' },
      });
    },
    close: () => files.close(),
  };
}
