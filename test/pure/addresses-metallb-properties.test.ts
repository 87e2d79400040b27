// time limit: 180s
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { metallbControllers } from '../../executor/addresses/metallb/controllers.ts';
import { MetallbLedger } from '../../executor/addresses/metallb/ledger.ts';
import type { MetallbSettings } from '../../executor/addresses/metallb/names.ts';
import { ledgerKinds } from '../../executor/addresses/objects.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { act, admin, classNames, networks, pick, removeClass, tenant } from './addresses-actors.ts';
import { Chaos, type ChaosOptions, coreOfChaos, workerOf } from './addresses-chaos.ts';
import { checkQuiet, checkRest, checkState, checkSuccessors, checkWrite } from './addresses-invariants.ts';
import { serviceActs } from './addresses-metallb-actors.ts';
import { settings } from './addresses-metallb-bed.ts';
import { checkDriverRest, checkDriverWrite } from './addresses-metallb-invariants.ts';
import { classSpec, collectGarbage, ingressOf, MetallbModel } from './addresses-metallb-model.ts';
import { ledgerObject } from './addresses-model.ts';
import { seededRandom } from './virtualClock.ts';

/** Invariants with core, driver and MetalLB over random interleavings. `KEELSON_TEST_SEED` runs one seed alone. */

const given = process.env.KEELSON_TEST_SEED;
const seeds = given === undefined ? Array.from({ length: 60 }, (_, n) => n + 1) : [Number(given)];
const stepsPerRun = 1_200;
const ids = 'E10, I1, I2, I3, I4, I5, I7, I8, I9, I10, I11, I13';
const rough: ChaosOptions['faults'] = { before: 0.04, after: 0.04, death: 0.002 };
const smooth: ChaosOptions['faults'] = { before: 0, after: 0, death: 0 };
const kinds = [...ledgerKinds, 'Service', 'IPAddressPool', 'L2Advertisement'];

/** In most runs classes stay: with them go all that they could have given. */
const calmAdmin = admin.filter((one) => one !== removeClass);

function begin(seed: number) {
  const faults = { ...rough };
  const random = seededRandom(seed);
  const own: MetallbSettings = {
    ...settings,
    forcedRelease: pick({ random }, ['never', 'deleted', 'always'] as const) ?? 'never',
  };
  const driver = workerOf('driver', kinds, metallbControllers, () => new MetallbLedger(own));
  const world: { metallb?: MetallbModel } = {};
  const chaos: Chaos = new Chaos({
    random,
    faults,
    workers: [coreOfChaos, driver],
    others: [() => world.metallb?.step((keys) => pick({ random }, keys)) ?? false, () => collectGarbage(chaos.server)],
    watch: (write) => {
      if (write.by === 'core') checkWrite(chaos.server, chaos.now, write);
      else checkDriverWrite(chaos.server, write);
      checkState(chaos.server);
    },
  });
  world.metallb = new MetallbModel(chaos.server, own.metallbNamespace);
  for (const name of classNames)
    chaos.server.create(
      ledgerObject(
        'IPAddressClass',
        name,
        classSpec(networks[name] ?? [], { reclaimPolicy: pick({ random }, ['Retain', 'Delete']) ?? 'Retain' }),
      ),
    );
  return { chaos, metallb: world.metallb, calm: () => void Object.assign(faults, smooth) };
}

type Run = ReturnType<typeof begin>;

/** Everything that can happen happens; what waits for a time gets some of it. */
async function rest({ chaos }: Run): Promise<void> {
  await chaos.settle();
  for (let n = 0; n < 6; n += 1) {
    chaos.now += 130_000;
    await chaos.settle();
  }
}

let steps = 0;
let elapsed = 0;
const met = new Map<string, number>();
const count = (key: string): void => void met.set(key, (met.get(key) ?? 0) + 1);

for (const seed of seeds)
  test(`${ids}: seed ${seed}: invariants hold at every step, and everything comes to rest`, async () => {
    const run = begin(seed);
    const { chaos, metallb } = run;
    const started = performance.now();
    const actor = { server: chaos.server, random: chaos.random };
    try {
      for (let n = 0; n < stepsPerRun; n += 1) {
        const what = chaos.random();
        if (what < 0.08) act(actor, [tenant, seed % 4 === 0 ? admin : calmAdmin, serviceActs, serviceActs]);
        else if (what < 0.084) chaos.now += Math.floor(chaos.random() * 600_000);
        else if (what < 0.085) metallb.restart((keys) => [...keys].sort(() => chaos.random() - 0.5));
        else await chaos.step();
        if (n % 50 === 0)
          for (const { kind, status } of chaos.server.list()) {
            count(`${kind} ${String(status?.phase ?? '')}`);
            if (status?.associatedTo !== undefined) count('associated');
          }
      }
      run.calm();
      await rest(run);
      checkRest(chaos.server);
      checkDriverRest(chaos.server);
      await checkQuiet(chaos);
      await checkSuccessors(chaos);
    } catch (error) {
      console.error(`seed ${seed}`);
      throw error;
    }
    steps += stepsPerRun;
    elapsed += performance.now() - started;
  });

test('every phase was met, and the runs were not slow', () => {
  if (given !== undefined) return;
  const phases = ['Available', 'Bound', 'Released', 'Conflict', 'Lost', 'Pending'].map((phase) => `IPAddress ${phase}`);
  for (const key of [...phases, 'IPAddressClaim Pending', 'IPAddressClaim Bound', 'associated'])
    assert.ok((met.get(key) ?? 0) > 5, `${key}: ${met.get(key)}`);
  console.error(`${steps} steps, ${Math.round(steps / (elapsed / 1000))} a second`);
});

/** A life in which the driver writes everything that it ever writes; it dies after one of its writes. */
async function life(dieAfter: number): Promise<{ readonly states: string; readonly writes: number }> {
  let writes = 0;
  let doomed = false;
  const random = seededRandom(7);
  const driver = workerOf('driver', kinds, metallbControllers, () => new MetallbLedger(settings));
  const world: { metallb?: MetallbModel } = {};
  const chaos: Chaos = new Chaos({
    random,
    faults: smooth,
    workers: [coreOfChaos, driver],
    others: [() => world.metallb?.step() ?? false, () => collectGarbage(chaos.server)],
    watch: (write) => {
      if (write.by !== 'driver') return;
      checkDriverWrite(chaos.server, write);
      writes += 1;
      doomed ||= writes === dieAfter;
    },
  });
  world.metallb = new MetallbModel(chaos.server, settings.metallbNamespace);
  const states: string[] = [];
  const settle = async (): Promise<void> => {
    while (await chaos.step())
      if (doomed) {
        doomed = false;
        chaos.die(1);
      }
    checkDriverRest(chaos.server);
    const state = chaos.server.list().map(({ kind, metadata, spec, status }) => {
      const user = status?.associatedTo ?? null;
      return [
        kind,
        metadata.name,
        metadata.annotations ?? {},
        spec ?? null,
        status?.phase ?? null,
        user,
        ingressOf({ status }),
      ];
    });
    states.push(JSON.stringify(state.map((one) => JSON.stringify(one).replaceAll(/u-\d+/g, 'u')).sort()));
  };
  const { server } = chaos;
  const live = (kind: string, name: string): KubeObject => {
    const namespace = kind === 'Service' || kind === 'IPAddressClaim' ? { namespace: 'tenant-a' } : {};
    const found = server.get({ kind, ...namespace, name });
    if (found === undefined) throw new Error(`no ${kind} ${name}`);
    return found;
  };
  const service = (name: string, claim: string | undefined): void => {
    const annotations = claim === undefined ? {} : { [addressAnnotations.claim]: claim };
    const present = server.get({ kind: 'Service', namespace: 'tenant-a', name });
    const spec = { type: 'LoadBalancer', ipFamilies: ['IPv4'] };
    if (present === undefined)
      server.create({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name, namespace: 'tenant-a', annotations },
        spec,
      });
    else {
      const { [addressAnnotations.claim]: _, ...others } = present.metadata.annotations ?? {};
      server.update({ ...present, metadata: { ...present.metadata, annotations: { ...others, ...annotations } } });
    }
  };
  server.create(ledgerObject('IPAddressClass', 'public', classSpec(['203.0.113.0/30'], { reclaimPolicy: 'Retain' })));
  server.create(ledgerObject('IPAddressClass', 'brief', classSpec(['203.0.113.4/30'], { reclaimPolicy: 'Delete' })));
  await settle();
  for (const [name, className] of [
    ['a', 'public'],
    ['b', 'public'],
    ['c', 'brief'],
  ] as const) {
    server.create(ledgerObject('IPAddressClaim', name, { className, family: 'IPv4' }));
    await settle();
  }
  service('s', 'a');
  service('t', 'c');
  await settle();
  service('s', 'b');
  await settle();
  service('s', undefined);
  server.remove(live('IPAddressClaim', 'c'));
  await settle();
  server.remove(live('Service', 's'));
  for (const name of ['a', 'b']) server.remove(live('IPAddressClaim', name));
  await settle();
  for (const { metadata } of server.list('IPAddress')) server.remove(live('IPAddress', metadata.name ?? ''));
  await settle();
  return { states: states.join('\n'), writes };
}

test('I12: whichever write is the last of a driver, the next one comes to the same end', async () => {
  const whole = await life(0);
  assert.ok(whole.writes > 30, String(whole.writes));
  for (let n = 1; n <= whole.writes; n += 1) assert.is((await life(n)).states, whole.states, `died after write ${n}`);
  console.error(`a death after each of ${whole.writes} writes`);
});

test.run();
