/** The ledger at scale: how fast claims are matched and provided for, beside MetalLB alone, and what the role weighs. */
import { setTimeout as delay } from 'node:timers/promises';
import { addressAnnotations } from '../../../constructs/api/addresses.ts';
import { metallbProvisioner } from '../../../constructs/api/metallb.ts';
import { objectOf, objectsOf } from '../../../constructs/lib/json.ts';
import type { KubeObject } from '../../../executor/kube/types.ts';
import { edgeOf } from '../../api/kubeBed.ts';
import { className, networkOf } from '../../standins/addresses-ledger.ts';
import { tiedDirectory } from '../../tools/directory.ts';
import type { BenchOptions } from '../options.ts';
import { busyShare, type MachineFacts, machineFacts } from '../proc.ts';
import { readRequests, requestsBetween, sumOf } from '../requests.ts';
import { follow } from './arrivals.ts';
import { type Latencies, type Pace, paced } from './paced.ts';
import { lbClass, openWorld, shape, type World } from './world.ts';

export interface Measurement extends Latencies {
  /** Share of the machine that others kept busy right before. */
  readonly busyBefore: number;
  /** Requests that write, for one that was served; Events among them. */
  readonly writes: number;
  /** CPU of the role meanwhile; absent where it does not run. */
  readonly cpuSeconds?: number;
}

export interface AddressesResults {
  readonly machine: MachineFacts;
  /** Plain Services, given addresses by MetalLB alone. */
  readonly plain: Measurement;
  readonly matched: Measurement;
  /** Claims with a Service each, from the first request to the address on the Service. */
  readonly provided: Measurement;
  /** The same, as fast as MetalLB alone was asked. */
  readonly hurried: Measurement;
  readonly startSeconds: number;
  /** Of core and driver in one process, after its start and in the end. */
  readonly startMiB: number;
  readonly peakMiB: number;
  /** Of the core alone, after its start. */
  readonly coreMiB: number;
}

const limitMs = 30_000;
const ledger = '/apis/local.sdn.cozystack.io/v1alpha1';
const isWrite = (key: string): boolean => /^(POST|PUT|PATCH|APPLY|DELETE)\b/.test(key);

const hasAddress = ({ status }: KubeObject): boolean => objectsOf(objectOf(status?.loadBalancer).ingress).length > 0;
const isBound = ({ status }: KubeObject): boolean => status?.phase === 'Bound';

interface Deeds {
  /** Kind and name of what is waited for. */
  readonly kind: 'Service' | 'IPAddressClaim';
  readonly name: (n: number) => string;
  readonly begin: (n: number) => Promise<unknown>;
  /** Requests of the bench itself for one deed: no work of who is measured. */
  readonly requests: number;
}

/** Runs deeds at a pace. */
async function timed({ server, namespace }: World, pace: Pace, deeds: Deeds): Promise<Measurement> {
  const { kind, name, begin } = deeds;
  const { client, transport } = edgeOf(server);
  const apiVersion = kind === 'Service' ? 'v1' : 'local.sdn.cozystack.io/v1alpha1';
  const arrivals = await follow(client, { apiVersion, kind, namespace }, kind === 'Service' ? hasAddress : isBound);
  const busyBefore = await busyShare();
  const before = await readRequests(server.admin);
  const latencies = await paced(pace, begin, (n) => arrivals.when(name(n), limitMs));
  // Events are sent behind.
  await delay(1_000);
  const requests = requestsBetween(before, await readRequests(server.admin));
  await arrivals.stop();
  await transport.close();
  const writes = sumOf(requests, isWrite) - latencies.asked * deeds.requests;
  return { ...latencies, busyBefore, writes: writes / Math.max(1, latencies.served) };
}

const service = ({ server, namespace }: World, name: string, annotations: Record<string, string> = {}) =>
  server.admin.expect('POST', `/api/v1/namespaces/${namespace}/services`, {
    body: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, annotations },
      spec: {
        type: 'LoadBalancer',
        loadBalancerClass: lbClass,
        allocateLoadBalancerNodePorts: false,
        ports: [{ port: 80 }],
      },
    },
  });

const claim = ({ server, namespace }: World, name: string, of: string) =>
  server.admin.expect('POST', `${ledger}/namespaces/${namespace}/ipaddressclaims`, {
    body: {
      apiVersion: 'local.sdn.cozystack.io/v1alpha1',
      kind: 'IPAddressClaim',
      metadata: { name },
      spec: { className: of, family: 'IPv4' },
    },
  });

/** Plain Services; before they are measured, one is waited for: MetalLB has read what was there. */
async function measurePlain(world: World, pace: Pace): Promise<Measurement> {
  const { metallb, namespace, server } = world;
  await metallb.pool('plain', [networkOf(255)], true);
  await service(world, 'first');
  const path = `/api/v1/namespaces/${namespace}/services`;
  for (const end = performance.now() + 120_000; ; await delay(100)) {
    const { body } = await server.admin.expect('GET', `${path}/first`);
    if (hasAddress(body)) break;
    if (performance.now() > end) throw new Error('MetalLB gives no address');
  }
  const name = (n: number): string => `plain-${n}`;
  const begin = (n: number): Promise<unknown> => service(world, name(n));
  const plain = await timed(world, pace, { kind: 'Service', name, begin, requests: 1 });
  for (const one of ['first', ...Array.from({ length: plain.asked }, (_, n) => name(n))])
    await server.admin.expect('DELETE', `${path}/${one}`);
  // Services without a claim's pin would be given addresses by it.
  await metallb.removePool('plain');
  return plain;
}

const freshClasses = 10;

/** Classes without a recorded address: MetalLB has to choose. */
async function makeClasses({ server, metallb }: World): Promise<void> {
  for (let n = shape.classes; n < shape.classes + freshClasses; n += 1) {
    const spec = { provisioner: metallbProvisioner, parameters: { addresses: [networkOf(n)] } };
    const metadata = { name: className(n) };
    const body = { apiVersion: 'local.sdn.cozystack.io/v1alpha1', kind: 'IPAddressClass', metadata, spec };
    await server.admin.expect('POST', `${ledger}/ipaddressclasses`, { body });
    const pool = `/apis/metallb.io/v1beta1/namespaces/${metallb.namespace}/ipaddresspools/iad-${className(n)}`;
    for (const end = performance.now() + limitMs; (await server.admin.request('GET', pool)).status !== 200; )
      if (performance.now() > end) throw new Error(`there is no pool of ${className(n)}`);
      else await delay(20);
  }
}

/** Claims of classes with recorded addresses. */
function matching(world: World): Deeds {
  const name = (n: number): string => `match-${n}`;
  const begin = (n: number): Promise<unknown> => claim(world, name(n), className(n % shape.classes));
  return { kind: 'IPAddressClaim', name, begin, requests: 1 };
}

/** Claims of classes without, each with a Service. */
function providing(world: World, prefix: string): Deeds {
  const name = (n: number): string => `${prefix}-${n}`;
  const begin = async (n: number): Promise<void> => {
    await claim(world, name(n), className(shape.classes + (n % freshClasses)));
    await service(world, name(n), { [addressAnnotations.claim]: name(n) });
  };
  return { kind: 'Service', name, begin, requests: 2 };
}

export async function measureAddresses(
  { seconds }: BenchOptions,
  progress: (line: string) => void,
): Promise<AddressesResults> {
  const work = await tiedDirectory('keelson-bench-addresses-');
  const machine = machineFacts();
  const world = await openWorld(work.path);
  try {
    const core = await world.startRole('core');
    const coreMiB = core.program.usage().peakMiB;
    await core.program.stop();
    progress(`core alone ${coreMiB.toFixed(0)} MiB`);
    const metallb = await world.startMetalLb();
    const plain = await measurePlain(world, { rate: 5, seconds });
    progress(`plain Services: p95 ${plain.p95.toFixed(0)} ms`);
    const { program, startSeconds } = await world.startRole('core,driver');
    try {
      const startMiB = program.usage().peakMiB;
      progress(`started in ${startSeconds.toFixed(1)} s, ${startMiB.toFixed(0)} MiB`);
      const matched = await timed(world, { rate: 50, seconds }, matching(world));
      const matchedCpu = program.usage().cpuSeconds;
      progress(`matched: p95 ${matched.p95.toFixed(0)} ms`);
      await makeClasses(world);
      program.usage();
      const provided = await timed(world, { rate: 1, seconds }, providing(world, 'full'));
      const providedCpu = program.usage().cpuSeconds;
      progress(`provided: p95 ${provided.p95.toFixed(0)} ms`);
      const hurried = await timed(world, { rate: 5, seconds }, providing(world, 'hurried'));
      const { cpuSeconds, peakMiB } = program.usage();
      return {
        machine,
        plain,
        matched: { ...matched, cpuSeconds: matchedCpu },
        provided: { ...provided, cpuSeconds: providedCpu },
        hurried: { ...hurried, cpuSeconds },
        startSeconds,
        startMiB,
        peakMiB,
        coreMiB,
      };
    } finally {
      await program.stop();
      await metallb.kill();
    }
  } finally {
    await world.close();
    await work.remove();
  }
}
