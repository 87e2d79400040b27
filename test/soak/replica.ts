import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { ApiServer } from '../apiserver/server.ts';
import { writeKubeconfig } from '../apiserver/shared.ts';
import { type FaultProxy, startFaultProxy } from '../faults/proxy.ts';
import type { KubeRequest } from '../faults/request.ts';
import { kill9, spawnTied } from '../tools/process.ts';

export interface ReplicaInput {
  readonly server: ApiServer;
  readonly program: string;
  readonly folder: string;
  readonly name: string;
  readonly namespace: string;
}

/** A write of an object, as it arrived: under which number of the Lease, and when. */
export interface Write {
  readonly replica: string;
  /** `leaseTransitions` of the Lease that this process claimed last. */
  readonly term: number;
  readonly at: number;
  readonly what: string;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** One executor as a process that comes and goes, behind a proxy that stays and sees every request of it. */
export class Replica {
  readonly name: string;
  readonly writes: Write[] = [];
  readonly #input: ReplicaInput;
  #proxy: FaultProxy | undefined;
  #child: ChildProcess | undefined;
  #term = -1;
  #stopped = false;
  #lines = '';

  constructor(input: ReplicaInput) {
    this.#input = input;
    this.name = input.name;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  get violations(): readonly string[] {
    return this.#proxy?.plan.violations ?? [];
  }

  /** The end of what its processes said. */
  get said(): string {
    return this.#lines.slice(-4_000);
  }

  async start(): Promise<void> {
    if (this.running) return;
    const { server, program, folder, name, namespace } = this.#input;
    this.#proxy ??= await this.#open();
    const kubeconfig = await writeKubeconfig(join(folder, `${name}.kubeconfig`), server, { url: this.#proxy.url });
    const args = [
      '--kubeconfig',
      kubeconfig,
      '--namespace',
      namespace,
      '--metrics-port',
      '0',
      '--test-lease-duration',
      '3s',
    ];
    const child = spawnTied(process.execPath, [program, 'executor', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.#lines = (this.#lines + chunk.toString('utf8')).slice(-100_000);
      });
    this.#child = child;
    this.#stopped = false;
  }

  async #open(): Promise<FaultProxy> {
    const proxy = await startFaultProxy(this.#input.server);
    proxy.plan.inject({
      match: (request) => {
        this.#see(request);
        return false;
      },
      fault: { kind: 'dropBefore' },
    });
    return proxy;
  }

  #see(request: KubeRequest): void {
    if (!request.mutating) return;
    if (request.resource === 'leases') {
      const spec = isObject(request.body) && isObject(request.body.spec) ? request.body.spec : {};
      if (request.name === 'keelson-executor' || request.verb === 'create')
        this.#term = Number(spec.leaseTransitions ?? this.#term);
      return;
    }
    if (request.resource === 'events') return;
    const what = `${request.verb} ${request.path}`;
    this.writes.push({ replica: this.name, term: this.#term, at: performance.now(), what });
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    this.#stopped = false;
    if (child !== undefined) await kill9(child);
  }

  stop(): void {
    this.#child?.kill('SIGSTOP');
    this.#stopped = true;
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
    this.#stopped = false;
  }

  /** The next `times` requests that match are hit. */
  fault(fault: Parameters<FaultProxy['plan']['inject']>[0]): void {
    this.#proxy?.plan.inject(fault);
  }

  cut(): void {
    this.#proxy?.cutConnections();
  }

  /** What was seen is forgotten, so that a long run needs no more memory than a short one. */
  forget(): void {
    this.#proxy?.plan.resetLog();
    this.writes.length = 0;
  }

  async end(): Promise<void> {
    await this.kill();
    await this.#proxy?.stop({ forgive: true });
  }
}
