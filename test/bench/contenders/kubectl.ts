/** `kubectl apply --server-side` over one folder. It removes nothing and looks after nothing. */
import type { ChildProcess } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { objectId } from '../../../constructs/lib/names.ts';
import { spawnTied } from '../../tools/process.ts';
import type { CorpusObject } from '../corpus.ts';
import type { Place } from '../place.ts';
import { endedChildrenCpuSeconds, peakMiB } from '../proc.ts';
import type { Contender, Deed, Usage, Worker } from './types.ts';

/** Writes one file per object, as a repository of manifests has them; answers the folder. */
async function writeManifests(folder: string, objects: readonly CorpusObject[]): Promise<string> {
  await mkdir(folder, { recursive: true });
  for (const [n, { object }] of objects.entries()) {
    const { metadata, kind } = object as { kind: string; metadata: { name: string } };
    const file = `${String(n).padStart(4, '0')}-${kind.toLowerCase()}-${metadata.name}.yaml`;
    // JSON is YAML; every contender reads it with its own reader.
    await writeFile(join(folder, file), JSON.stringify(object, undefined, 2));
  }
  return folder;
}

/** Identity for the list of what has to be there. */
export function corpusId({ object }: CorpusObject): string {
  const { apiVersion, kind, metadata } = object as {
    apiVersion: string;
    kind: string;
    metadata: { name: string; namespace?: string };
  };
  return objectId({ apiVersion, kind, name: metadata.name, namespace: metadata.namespace });
}

const pollMs = 10;

export const kubectl: Contender = { name: 'kubectl', title: 'kubectl apply --server-side', open };

async function open(place: Place, objects: readonly CorpusObject[]): Promise<Worker> {
  const folder = await writeManifests(join(place.server.directory, 'manifests'), objects);
  const used = { cpuSeconds: 0, peakMiB: 0 };
  const apply = (...more: string[]): Deed => {
    let child: ChildProcess | undefined;
    let said = '';
    let timer: NodeJS.Timeout | undefined;
    let began = 0;
    return {
      statusKey: '',
      async begin() {
        began = endedChildrenCpuSeconds();
        const args = ['--kubeconfig', place.server.kubeconfig, 'apply', '--server-side', '--field-manager=bench'];
        child = spawnTied(place.server.kubectl, [...args, ...more, '-f', folder], {
          stdio: ['ignore', 'ignore', 'pipe'],
          env: { HOME: place.server.directory, PATH: '/usr/bin:/bin' },
        });
        child.stderr?.on('data', (chunk: Buffer) => {
          said = `${said}${chunk.toString('utf8')}`.slice(-2_000);
        });
        const { pid = -1 } = child;
        timer = setInterval(() => {
          used.peakMiB = Math.max(used.peakMiB, peakMiB(pid) ?? 0);
        }, pollMs);
      },
      done() {
        if (child === undefined || (child.exitCode === null && child.signalCode === null)) return false;
        clearInterval(timer);
        if (child.exitCode !== 0) throw new Error(`kubectl ended with ${child.exitCode}: ${said}`);
        used.cpuSeconds += endedChildrenCpuSeconds() - began;
        began = endedChildrenCpuSeconds();
        return true;
      },
    };
  };
  return {
    cold: async () => apply(),
    again: async () => apply(),
    repair: async () => apply('--force-conflicts'),
    keep: async () => undefined,
    usage(): Usage {
      const usage = { ...used };
      used.cpuSeconds = 0;
      return usage;
    },
    close: async () => undefined,
  };
}
