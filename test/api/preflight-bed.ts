/** Hosts of a cluster whose pods no kubelet runs: the Jobs' pods are made by the real controller, and their program runs here. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { preflight } from '../../constructs/api/preflight.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { AdminClient } from '../apiserver/client.ts';
import type { Loose } from './network-bed.ts';

const run = promisify(execFile);
const program = new URL('../../bin/probe.ts', import.meta.url).pathname;
const pods = '/api/v1/namespaces/kube-system/pods';

export interface Hosts {
  /** Nodes whose pods do not get to run. */
  readonly silent: Set<string>;
  /** UIDs of the Jobs whose pods answered. */
  readonly answered: Set<string>;
  /** Puts a file onto a node. */
  put(node: string, path: string): Promise<void>;
  /** Whether a file is still on a node. */
  holds(node: string, path: string): Promise<boolean>;
  remove(node: string, path: string): Promise<void>;
  close(): Promise<void>;
}

export async function playHosts(admin: AdminClient): Promise<Hosts> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-hosts-'));
  const stop = new AbortController();
  const silent = new Set<string>();
  const answered = new Set<string>();
  const at = (node: string, path: string): string => join(folder, node, path);

  async function answer(pod: Loose): Promise<void> {
    const { nodeName, containers } = pod.spec;
    const [container] = containers;
    await mkdir(at(nodeName, 'etc'), { recursive: true });
    const out = at(nodeName, `words-${pod.metadata.uid}`);
    const { name, uid, namespace } = pod.metadata;
    const env = { POD_NAMESPACE: namespace, POD_NAME: name, POD_UID: uid, NODE_NAME: nodeName };
    const own = [`--root=${join(folder, nodeName)}`, `--out=${out}`];
    await run(process.execPath, [program, ...container.args, ...own], { env });
    const message = await readFile(out, 'utf8');
    const terminated = { exitCode: 0, reason: 'Completed', message };
    const status = { name: container.name, image: container.image, imageID: '', ready: false, restartCount: 0 };
    const reply = await admin.request('PATCH', `${pods}/${name}/status`, {
      body: {
        metadata: { uid },
        status: { phase: 'Succeeded', containerStatuses: [{ ...status, state: { terminated } }] },
      },
      type: 'application/merge-patch+json',
    });
    if (reply.status === 200) answered.add(pod.metadata.ownerReferences[0].uid);
  }

  async function play(): Promise<void> {
    const done = new Set<string>();
    while (!stop.signal.aborted) {
      const { body } = await admin.expect('GET', pods, { query: { labelSelector: preflight.label } });
      const waiting = body.items.filter(
        ({ metadata, spec }: Loose) => !done.has(metadata.uid) && !silent.has(spec.nodeName),
      );
      for (const pod of waiting) {
        done.add(pod.metadata.uid);
        await answer(pod);
      }
      await systemClock.sleep(50, stop.signal).catch(() => undefined);
    }
  }

  const playing = play();
  return {
    silent,
    answered,
    async put(node, path) {
      await mkdir(dirname(at(node, path)), { recursive: true });
      await writeFile(at(node, path), 'data');
    },
    holds: (node, path) =>
      readFile(at(node, path)).then(
        () => true,
        () => false,
      ),
    remove: (node, path) => rm(at(node, path), { recursive: true }),
    async close() {
      stop.abort();
      await playing;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
