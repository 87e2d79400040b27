import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { createHttpClient } from '../../renderer/http/client.ts';
import { anonymous, type CredentialStore } from '../../renderer/oci/credentials.ts';
import { parseOciUrl, type Reference } from '../../renderer/oci/reference.ts';
import { createRegistryClient } from '../../renderer/oci/registry.ts';
import type { RegistryFailure, RegistryOutcome } from '../../renderer/oci/types.ts';
import { type RegistryOptions, type StandInRegistry, startRegistry } from '../standins/registry.ts';

export const canary = 'canary-55d0c2';
export const login = { username: 'robot', password: canary };

interface Bed {
  readonly registry: StandInRegistry;
  readonly client: ReturnType<typeof createRegistryClient>;
}

interface BedOptions extends RegistryOptions {
  readonly credentials?: CredentialStore;
  readonly registries?: (host: string) => readonly RegistryMirror[];
  readonly pem?: string;
  readonly moreHosts?: readonly string[];
}

export async function withRegistry(options: BedOptions, body: (bed: Bed) => Promise<void>): Promise<void> {
  const registry = await startRegistry(options);
  const http = createHttpClient({
    allowedHosts: [registry.host, ...(options.moreHosts ?? [])],
    allowField: 'spec.allow.chartHosts',
    clock: systemClock,
    random: () => 0.5,
    retry: { attempts: 2, initialMs: 1 },
    ...(options.pem === undefined ? {} : { ca: [{ pem: options.pem }] }),
  });
  try {
    const client = createRegistryClient({
      http,
      credentials: options.credentials ?? anonymous,
      registries: options.registries?.(registry.host) ?? [],
    });
    await body({ registry, client });
  } finally {
    http.close();
    await registry.close();
  }
}

export async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-oci-'));
  try {
    await body(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

export const reference = (registry: StandInRegistry, rest: string): Reference => {
  const ref = parseOciUrl(`oci://${registry.host}/${rest}`);
  if (ref === undefined) throw new Error(`not a reference: ${rest}`);
  return ref;
};

export function failure<T>(outcome: RegistryOutcome<T>): RegistryFailure {
  if (outcome.ok) throw new Error('expected a failure');
  assert.not.match(JSON.stringify(outcome.failure), canary);
  return outcome.failure;
}

export function value<T>(outcome: RegistryOutcome<T>): T {
  if (!outcome.ok) throw new Error(`${outcome.failure.kind}: ${outcome.failure.message}`);
  return outcome.value;
}

export const known = (credential: Awaited<ReturnType<CredentialStore['get']>>): CredentialStore => ({
  get: async () => credential,
});
