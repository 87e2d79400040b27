import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { registryAnswers } from '../../images/push.ts';
import { recordedProcess, startDaemon } from './daemon.ts';
import { killAll } from './processes.ts';
import type { ClusterState, StateFile } from './state.ts';

const names = ['registry-host', 'registry-nodes'] as const;

/** The registry's name on the host, in manifests and on every node. */
export function registryRef(state: ClusterState): string {
  return `127.0.0.1:${state.ports.registry}`;
}

function configuration(state: ClusterState, address: string): string {
  return JSON.stringify({
    version: '0.1',
    log: { level: 'warn', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(state.directory, 'registry') }, delete: { enabled: true } },
    // Both processes must accept uploads that the other one began.
    http: { addr: `${address}:${state.ports.registry}`, secret: state.id },
  });
}

/**
 * Starts the registry: one process on the host's loopback and one on the bridge, over the same storage, so that it
 * has one name for everybody and is open to nobody outside.
 */
export async function startRegistry(file: StateFile, clock: Clock, signal?: AbortSignal): Promise<void> {
  const state = file.current;
  mkdirSync(join(state.directory, 'registry'), { recursive: true });
  const addresses = { 'registry-host': '127.0.0.1', 'registry-nodes': state.bridge.address };
  for (const name of names) {
    const config = join(state.directory, `${name}.json`);
    writeFileSync(config, configuration(state, addresses[name]), { mode: 0o600 });
    await startDaemon(file, {
      name,
      argv: ['docker-registry', 'serve', config],
      env: { OTEL_TRACES_EXPORTER: 'none' },
    });
  }
  for (const name of names) {
    const endpoint = `${addresses[name]}:${state.ports.registry}`;
    await waitFor({
      what: `the registry on ${endpoint} to answer`,
      limitMs: 20_000,
      intervalMs: 50,
      clock,
      ...(signal === undefined ? {} : { signal }),
      probe: async () => ((await registryAnswers(endpoint)) ? true : undefined),
    });
  }
}

export async function stopRegistry(file: StateFile, clock: Clock): Promise<void> {
  const ids = names.map((name) => recordedProcess(file, name)).filter((id) => id !== undefined);
  await killAll(ids, clock);
}
