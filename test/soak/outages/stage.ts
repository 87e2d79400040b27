import { systemClock } from '../../../constructs/lib/clock.ts';
import { type SliceBed, sliceBed } from '../../api/slice-bed.ts';
import { type BuiltPayload, buildPayload, configMap, namespaceObject, testKey } from '../../api/slice-payload.ts';
import type { ApiServer } from '../../apiserver/server.ts';
import { objectWrites, type Told } from './judge.ts';
import { type Observed, startObserved } from './observed.ts';

export const objectCount = 12;
const names = Array.from({ length: objectCount }, (_, n) => `map-${String(n).padStart(2, '0')}`);
const inPlaceLimitMs = 600_000;
const pollMs = 500;

// biome-ignore lint/suspicious/noExplicitAny: tests read objects loosely
type Loose = any;

/** One Release of twelve objects in two phases on an API server that scenarios break, and executors that work on it. */
export interface Stage {
  readonly server: ApiServer;
  readonly namespace: string;
  /** Everything that the Release said, as it was seen. */
  readonly told: readonly Told[];
  executor(name: string): Promise<Observed>;
  /** Delivers a payload whose objects hold this value; answers its digest. */
  want(value: string): Promise<string>;
  /** Waits until it is in place and Ready is True; answers when that was. */
  inPlace(digest: string): Promise<number>;
  /** Waits until the probe answers; the limit names what did not happen. */
  until<T>(what: string, probe: () => T | undefined, limitMs: number): Promise<T>;
  /** Waits until this many objects were written by anybody since `since`. */
  written(by: Observed, count: number, since: number): Promise<void>;
  uids(): Promise<Map<string, string>>;
  /** What the objects hold. */
  values(): Promise<readonly string[]>;
  kill(): Promise<void>;
  restart(): Promise<void>;
  sleep(seconds: number): Promise<void>;
  close(): Promise<void>;
}

export interface StageInput {
  readonly server: ApiServer;
  readonly program: string;
  readonly folder: string;
}

export async function openStage(input: StageInput): Promise<Stage> {
  const { server } = input;
  const bed = await sliceBed(server);
  const { namespace } = bed.names;
  await server.admin.expect('POST', '/api/v1/namespaces', { body: namespaceObject(namespace) });
  const told: Told[] = [];
  const stop = new AbortController();
  const listening = listen(bed, told, stop.signal);
  const started: Observed[] = [];
  const objects = async (): Promise<Loose[]> => {
    const { body } = await server.admin.expect('GET', `/api/v1/namespaces/${namespace}/configmaps`);
    return body.items.filter(({ metadata }: Loose) => metadata.name.startsWith('map-'));
  };
  const until: Stage['until'] = async (what, probe, limitMs) => {
    const deadline = performance.now() + limitMs;
    for (;;) {
      const found = probe();
      if (found !== undefined) return found;
      if (performance.now() > deadline) throw new Error(`not within ${limitMs / 1000} s: ${what}`);
      await systemClock.sleep(100);
    }
  };
  return {
    server,
    namespace,
    told,
    until,
    async executor(name) {
      const one = await startObserved({ ...input, name, namespace: bed.system });
      started.push(one);
      return one;
    },
    async want(value) {
      const built = await build(bed, value);
      await bed.deliver(built);
      await bed.applyRelease(built, { approval: { mode: 'never' } });
      return built.digest;
    },
    inPlace: (digest) => {
      const done = (): number | undefined =>
        told.find(({ actual, ready, current }) => actual === digest && ready === 'True' && current)?.at;
      return until('everything to be in place', done, inPlaceLimitMs).catch((error: unknown) => {
        throw new Error(`${String(error)}; last it said ${JSON.stringify(told.at(-1))}`);
      });
    },
    async written(by, count, since) {
      const enough = (): true | undefined =>
        objectWrites(by.log, namespace).filter(({ answeredAt = 0 }) => answeredAt >= since).length >= count ||
        undefined;
      await until(`${count} objects to be written`, enough, 120_000);
    },
    uids: async () => new Map((await objects()).map(({ metadata }) => [metadata.name, metadata.uid])),
    values: async () => [...new Set((await objects()).map(({ data }) => String(data.value)))].sort(),
    kill: () => server.kill9(),
    restart: () => server.restart(),
    sleep: (seconds) => systemClock.sleep(seconds * 1000),
    async close() {
      stop.abort();
      await listening;
      for (const one of started) await one.end();
      await bed.close();
    },
  };
}

const build = ({ names: { release, namespace } }: SliceBed, value: string): Promise<BuiltPayload> => {
  const phase = (name: string, from: number, to: number) => ({
    name,
    manifests: names.slice(from, to).map((one) => ({ object: configMap(namespace, one, { value }) })),
  });
  const half = objectCount / 2;
  return buildPayload({ release, key: testKey, phases: [phase('one', 0, half), phase('two', half, objectCount)] });
};

/** Remembers each thing that the Release says once; a server that does not answer says nothing. */
async function listen(bed: SliceBed, told: Told[], signal: AbortSignal): Promise<void> {
  const path = `/apis/keelson.dev/v1alpha1/namespaces/${bed.system}/releases/${bed.names.release}`;
  let last = '';
  while (!signal.aborted) {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(5_000)]);
    const reply = await bed.server.admin.request('GET', path, { signal: limit }).catch(() => undefined);
    if (reply?.status === 200) {
      const now = read(reply.body);
      const words = JSON.stringify(now);
      if (words !== last) told.push({ at: performance.now(), ...now });
      last = words;
    }
    await systemClock.sleep(pollMs, signal).catch(() => undefined);
  }
}

function read({ metadata, status = {} }: Loose): Omit<Told, 'at'> {
  const find = (type: string): Loose => status.conditions?.find((one: Loose) => one.type === type) ?? {};
  const ready = find('Ready');
  return {
    ready: ready.status ?? '',
    reason: ready.reason ?? '',
    message: ready.message ?? '',
    failing: find('Failing').status ?? '',
    actual: status.actual ?? '',
    current: status.observedGeneration === metadata.generation,
  };
}
