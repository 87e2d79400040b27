import type { InstallationEntry } from '../../constructs/api/payload.ts';
import { digestOf } from '../../constructs/lib/digest.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { specOf } from './network-fixture.ts';

export const [d1, d2, d3] = ['a', 'b', 'c'].map((letter) => digestOf(letter));
export const ref = {
  apiVersion: 'network.keelson.dev/v1alpha1',
  kind: 'KubeOVNInstallation',
  namespace: 'kube-system',
  name: 'main',
};
export const entry = (changes: Partial<InstallationEntry> = {}): InstallationEntry => ({
  ...ref,
  specDigest: String(d1),
  manifestDigest: String(d1),
  baseDigest: String(d1),
  version: '1.16.13',
  mode: 'full',
  nodes: [1, 2, 3].map((n) => ({ name: `n${n}`, uid: `u${n}`, addresses: [`10.0.0.${n}`] })),
  ...changes,
});

export const installation = (spec: Parameters<typeof specOf>[0] = {}, status: JsonObject = {}): KubeObject => ({
  apiVersion: ref.apiVersion,
  kind: ref.kind,
  metadata: { name: 'main', namespace: 'kube-system', uid: 'uid-1', generation: 1 },
  spec: specOf(spec) as unknown as JsonObject,
  status,
});

/** A checkpoint that a status may hold, of a specification. */
export const checkpointAt = (digest: string): JsonObject => ({
  specDigest: digest,
  manifestDigest: digest,
  baseDigest: digest,
  payloadDigest: digest,
  recordedAt: '2026-01-01T00:00:00Z',
});
