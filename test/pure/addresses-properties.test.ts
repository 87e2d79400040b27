// time limit: 120s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { LedgerRef } from '../../executor/addresses/api.ts';
import type { LedgerKind } from '../../executor/addresses/objects.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { act, driverFinishes } from './addresses-actors.ts';
import { Chaos, type ChaosOptions } from './addresses-chaos.ts';
import { checkQuiet, checkRest, checkState, checkSuccessors, checkWrite, shown } from './addresses-invariants.ts';
import { ledgerObject, provisioner } from './addresses-model.ts';
import { seededRandom } from './virtualClock.ts';

/** Invariants of the core over random interleavings. `KEELSON_TEST_SEED` runs one seed alone. */

const given = process.env.KEELSON_TEST_SEED;
const seeds = given === undefined ? Array.from({ length: 100 }, (_, n) => n + 1) : [Number(given)];
const stepsPerRun = 1_200;
/** What a run of this size asserts at every step and at rest: three classes, twenty claims, faults. */
const ids = 'E10, I1, I2, I3, I4, I5, I7, I8, I11, I13';
const rough: ChaosOptions['faults'] = { before: 0.04, after: 0.04, death: 0.002 };
const smooth: ChaosOptions['faults'] = { before: 0, after: 0, death: 0 };

/** The same world with other faults from now on. */
interface Run {
  readonly chaos: Chaos;
  calm(): void;
  wrote: number;
}

function begin(seed: number): Run {
  const faults = { ...rough };
  const random = seededRandom(seed);
  const chaos: Chaos = new Chaos({
    random,
    faults,
    watch: (write) => {
      checkWrite(chaos.server, chaos.now, write);
      checkState(chaos.server);
    },
  });
  return { chaos, calm: () => void Object.assign(faults, smooth), wrote: 0 };
}

async function rest(run: Run): Promise<void> {
  await run.chaos.settle();
  await driverFinishes(run.chaos);
  await run.chaos.settle();
}

/** I1: what claims show is made again from the ledger. */
async function checkRecomputed({ chaos }: Run): Promise<void> {
  const before = new Map(chaos.server.list('IPAddressClaim').map((claim) => [claim.metadata.uid, shown(claim)]));
  for (const claim of chaos.server.list('IPAddressClaim')) {
    // Which class was found is remembered there and nowhere else; so is that the claim was Bound once.
    const { phase = 'Pending', className } = claim.status ?? {};
    chaos.server.updateStatus(claim, { phase, ...(className === undefined ? {} : { className }) });
  }
  await chaos.settle();
  for (const claim of chaos.server.list('IPAddressClaim'))
    assert.equal(shown(claim), before.get(claim.metadata.uid), `I1 ${claim.metadata.name}`);
}

let steps = 0;
let elapsed = 0;
const phases = new Map<string, number>();

for (const seed of seeds)
  test(`${ids}: seed ${seed}: invariants hold at every step, and everything comes to rest`, async () => {
    const run = begin(seed);
    const { chaos } = run;
    const started = performance.now();
    try {
      for (let n = 0; n < stepsPerRun; n += 1) {
        const what = chaos.random();
        if (what < 0.12) act({ server: chaos.server, random: chaos.random });
        else if (what < 0.125) chaos.now += Math.floor(chaos.random() * 600_000);
        else await chaos.step();
        for (const object of chaos.server.list()) {
          const key = `${object.kind} ${String(object.status?.phase ?? '')}`;
          if (n % 50 === 0) phases.set(key, (phases.get(key) ?? 0) + 1);
        }
      }
      run.calm();
      await rest(run);
      checkRest(chaos.server);
      await checkQuiet(chaos);
      await checkRecomputed(run);
      await checkSuccessors(chaos);
      checkRest(chaos.server);
    } catch (error) {
      console.error(`seed ${seed}`);
      throw error;
    }
    steps += stepsPerRun;
    elapsed += performance.now() - started;
  });

test('every phase was met, and the runs were not slow', () => {
  if (given !== undefined) return;
  for (const key of ['Available', 'Bound', 'Released', 'Conflict', 'Lost', 'Pending'])
    assert.ok((phases.get(`IPAddress ${key}`) ?? 0) > 5, `IPAddress ${key}: ${phases.get(`IPAddress ${key}`)}`);
  for (const key of ['Pending', 'Bound', 'Lost'])
    assert.ok((phases.get(`IPAddressClaim ${key}`) ?? 0) > 5, `IPAddressClaim ${key}`);
  console.error(`${steps} steps, ${Math.round(steps / (elapsed / 1000))} a second`);
});

/** A life in which every kind of write occurs once at least; time passes only when nothing else happens. */
async function life(dieAfter: number, at: 'before' | 'after'): Promise<{ state: string; writes: number }> {
  let left = dieAfter;
  const random = seededRandom(7);
  let doomed = false;
  const chaos: Chaos = new Chaos({
    random,
    faults: smooth,
    watch: (write) => {
      checkWrite(chaos.server, chaos.now, write);
      checkState(chaos.server);
      left -= 1;
      doomed ||= left === 0;
    },
  });
  const settle = async (): Promise<void> => {
    while (await chaos.step())
      if (doomed) {
        doomed = false;
        // Before the answer of the write is worked on, or some steps later.
        for (let n = 0; at === 'after' && n < 3; n += 1) await chaos.step();
        chaos.die();
      }
  };
  const create = (kind: LedgerKind, name: string, spec: JsonObject): void =>
    void chaos.server.create(ledgerObject(kind, name, spec));
  const live = (kind: LedgerKind, name: string): KubeObject => {
    const ref: LedgerRef = kind === 'IPAddressClaim' ? { kind, namespace: 'tenant-a', name } : { kind, name };
    const found = chaos.server.get(ref);
    if (found === undefined) throw new Error(`no ${kind} ${name}`);
    return found;
  };
  const address = (n: number, spec: JsonObject = {}): void =>
    create('IPAddress', `ip-${n}`, {
      className: 'public',
      address: `203.0.113.${n}`,
      reclaimPolicy: 'Retain',
      source: { fromClass: {} },
      ...spec,
    });
  create('IPAddressClass', 'public', { provisioner, releaseDelay: '1h', reclaimPolicy: 'Retain' });
  create('IPAddressClaim', 'a', { className: 'public', family: 'IPv4' });
  create('IPAddressClaim', 'b', { className: 'public', family: 'IPv4', addressName: 'ip-2' });
  create('IPAddressClaim', 'c', { className: 'public', family: 'IPv4', addressName: 'ip-3' });
  await settle();
  address(1);
  address(2, { claimRef: { namespace: 'tenant-a', name: 'b' } });
  address(3, { claimRef: { namespace: 'tenant-a', name: 'c' }, reclaimPolicy: 'Delete' });
  address(4, { claimRef: { namespace: 'tenant-a', name: 'nobody' } });
  address(5, { claimRef: { namespace: 'tenant-a', name: 'nobody' }, reclaimPolicy: 'Delete' });
  await settle();
  for (const name of ['b', 'c']) chaos.server.remove(live('IPAddressClaim', name));
  await settle();
  chaos.now += 3_600_000;
  await settle();
  for (const name of ['ip-2', 'ip-4']) chaos.server.remove(live('IPAddress', name));
  chaos.server.remove(live('IPAddressClaim', 'a'));
  chaos.server.remove(live('IPAddressClass', 'public'));
  await settle();
  chaos.server.remove(live('IPAddress', 'ip-1'));
  await settle();
  const state = chaos.server
    .list()
    .map(({ kind, metadata, spec, status }) => [kind, metadata.name, spec ?? null, status ?? null]);
  return { state: JSON.stringify(state.sort()), writes: chaos.writes };
}

test('I12, race 10: whichever write is the last of a process, the next one comes to the same end', async () => {
  const whole = await life(0, 'after');
  assert.is(whole.state, '[]', 'a life ends with nothing left');
  assert.ok(whole.writes > 25, String(whole.writes));
  for (let n = 1; n <= whole.writes; n += 1)
    for (const at of ['before', 'after'] as const) {
      const { state } = await life(n, at);
      assert.is(state, whole.state, `died ${at} the answer to write ${n}`);
    }
});

test.run();
