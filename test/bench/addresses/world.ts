/** A cluster with a large ledger, MetalLB's controller, and the role as images hold it. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { addressesNodeOptions } from '../../../constructs/api/addresses.ts';
import { bundleInParts } from '../../../images/bundle.ts';
import { install } from '../../api/addresses-bed.ts';
import { type Controller, type MetalLb, metalLb, metalLbServer } from '../../api/metallb-bed.ts';
import { freshNamespace } from '../../apiserver/namespace.ts';
import { plant } from '../../apiserver/plant.ts';
import type { ApiServer } from '../../apiserver/server.ts';
import { ledgerOf } from '../../standins/addresses-ledger.ts';
import { freePort } from '../../tools/ports.ts';
import { type Program, startProgram } from '../contenders/program.ts';

/**
 * The Services that are there already are none of MetalLB's here: it would write each of 10,000 once after its start, 20 a second,
 * which measures nobody else. What comes is of this class, and its.
 */
export const lbClass = 'example.com/bench';

export const shape = { classes: 200, used: 0, claimed: 25, free: 25 } as const;

export interface World {
  readonly server: ApiServer;
  readonly metallb: MetalLb;
  /** Where claims and Services are. */
  readonly namespace: string;
  startMetalLb(): Promise<Controller>;
  /** Starts the role; answers once it has looked at everything, and how long that took. */
  startRole(workers: string): Promise<Role>;
  close(): Promise<void>;
}

export interface Role {
  readonly program: Program;
  readonly startSeconds: number;
}

const limitMs = 120_000;

async function passes(port: number, prefix: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const counts = text.match(new RegExp(`^${prefix}_pass_seconds_count\\{.*\\} (\\d+)$`, 'gm')) ?? [];
  return counts.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

/** One pass for each object, placeholders apart. */
const { classes, claimed, free } = shape;
const firstPasses = classes * (1 + claimed + free + claimed);

export async function openWorld(folder: string): Promise<World> {
  const server = await metalLbServer({ fsync: true });
  const { admin } = server;
  await install(server);
  const metallb = await metalLb(server);
  const namespace = await freshNamespace(admin, 'tenant');
  const placeholderNamespace = await freshNamespace(admin, 'holds');
  const settings = { metallbNamespace: metallb.namespace, placeholderNamespace, forcedRelease: 'deleted' } as const;
  await plant(server.etcdUrl, ledgerOf({ ...shape, namespace, settings }));
  const bundle = join(folder, 'program');
  await bundleInParts(fileURLToPath(new URL('../../../bin/keelson.ts', import.meta.url)), bundle);
  return {
    server,
    metallb,
    namespace,
    async startMetalLb() {
      const controller = await metallb.start({ lbClass });
      for (const deadline = performance.now() + limitMs; (await controller.stale()) !== false; await delay(100))
        if (performance.now() > deadline) throw new Error('MetalLB does not take its pools');
      return controller;
    },
    async startRole(workers) {
      const port = await freePort();
      const began = performance.now();
      const program = startProgram(
        process.execPath,
        [
          ...[join(bundle, 'keelson.mjs'), 'executor', '--role', 'addresses', '--workers', workers],
          ...['--kubeconfig', server.kubeconfig, '--lease-namespace', namespace, '--metrics-port', String(port)],
          ...['--metallb-namespace', metallb.namespace, '--placeholder-namespace', placeholderNamespace],
          ...['--lb-class', lbClass],
        ],
        { PATH: process.env.PATH, NODE_OPTIONS: addressesNodeOptions },
      );
      const names = { core: 'address_controller', driver: 'metallb_iad' } as const;
      for (const [worker, prefix] of Object.entries(names)) {
        if (!workers.split(',').includes(worker)) continue;
        await program.says(`${worker}: every kind is listed`, limitMs);
        for (const end = performance.now() + limitMs; (await passes(port, prefix)) < firstPasses; await delay(50))
          if (performance.now() > end) throw new Error(`${worker} has not looked at everything`);
      }
      return { program, startSeconds: (performance.now() - began) / 1000 };
    },
    close: () => server.stop(),
  };
}
