import { systemClock } from '../../constructs/lib/clock.ts';
import type { Model, World } from './world.ts';

/** A source of choices: the same seed makes the same ones. */
export type Choose = <T>(from: readonly T[]) => T;

export interface Chance {
  readonly random: () => number;
  readonly choose: Choose;
}

type Action = (world: World, chance: Chance) => Promise<string>;

const pathOf = ({ bed }: Model, name: string): string => `/api/v1/namespaces/${bed.names.namespace}/configmaps/${name}`;

const merge = { type: 'application/merge-patch+json' };
const mostEdits = 2;

/** A payload like the last one: some values change, some objects come, some go. */
const publish: Action = async (world, { random, choose }) => {
  const model = choose(world.models);
  const wanted = new Map(model.wanted);
  const before = [...wanted.keys()];
  for (const name of before) {
    if (random() < 0.3) wanted.set(name, `value-${Math.floor(random() * 1e6)}`);
    if (random() < 0.1 && wanted.size > 4) wanted.delete(name);
  }
  for (let n = Math.floor(random() * 6); n > 0; n -= 1)
    wanted.set(`${model.prefix}map-${Math.floor(random() * 40)}`, `value-${Math.floor(random() * 1e6)}`);
  await world.deliver(model, wanted);
  const gone = before.filter((name) => !wanted.has(name));
  return `publish ${wanted.size} objects of ${model.prefix}${gone.length === 0 ? '' : ` without ${gone.join(' ')}`}`;
};

/** An object of which the run may still change a value: repairing it has not been given up. */
function editable(model: Model, { choose }: Chance): string | undefined {
  const names = [...model.uids.keys()].filter(
    (name) => (model.edits.get(name) ?? 0) < mostEdits && !model.taken.has(name),
  );
  return names.length === 0 ? undefined : choose(names.sort());
}

const edit: Action = async (world, chance) => {
  const model = chance.choose(world.models);
  const name = editable(model, chance);
  if (name === undefined) return 'edit nothing';
  model.edits.set(name, (model.edits.get(name) ?? 0) + 1);
  const { status } = await model.bed.server.admin.request('PATCH', pathOf(model, name), {
    ...merge,
    query: { fieldManager: 'kubectl-edit' },
    body: { data: { value: 'edited by hand' } },
  });
  return `edit ${name}: ${status}`;
};

const vanish: Action = async (world, chance) => {
  const model = chance.choose(world.models);
  const name = editable(model, chance);
  if (name === undefined) return 'delete nothing';
  // It comes back as another object, without what others had added.
  model.uids.delete(name);
  model.foreign.delete(name);
  const { status } = await model.bed.server.admin.request('DELETE', pathOf(model, name));
  return `delete ${name}: ${status}`;
};

const addForeign: Action = async (world, { random, choose }) => {
  const model = choose(world.models);
  const names = [...model.uids.keys()].sort();
  if (names.length === 0) return 'add nothing';
  const name = choose(names);
  const value = `foreign-${Math.floor(random() * 1e6)}`;
  // Until it is answered nobody knows what is there.
  model.foreign.delete(name);
  const { status } = await model.bed.server.admin.request('PATCH', pathOf(model, name), {
    type: 'application/apply-patch+yaml',
    query: { fieldManager: 'another' },
    body: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: model.bed.names.namespace, uid: model.uids.get(name) ?? '' },
      data: { foreign: value },
    },
  });
  if (status === 200) model.foreign.set(name, value);
  return `add a foreign key to ${name}: ${status}`;
};

const seize: Action = async (world, chance) => {
  const model = chance.choose(world.models);
  const name = editable(model, chance);
  if (name === undefined) return 'seize nothing';
  model.edits.set(name, mostEdits);
  model.taken.add(name);
  const { status } = await applyAs(model, name, { value: 'seized' });
  return `seize a value of ${name}: ${status}`;
};

function applyAs(model: Model, name: string, data: Record<string, string> | undefined) {
  return model.bed.server.admin.request('PATCH', pathOf(model, name), {
    type: 'application/apply-patch+yaml',
    query: { fieldManager: 'usurper', force: 'true' },
    body: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: model.bed.names.namespace, uid: model.uids.get(name) ?? '' },
      ...(data === undefined ? {} : { data }),
    },
  });
}

/** Another manager gives back what it had taken by force. */
export async function giveBack(world: World): Promise<void> {
  for (const model of world.models) {
    for (const name of model.taken) if (model.uids.has(name)) await applyAs(model, name, undefined);
    model.taken.clear();
  }
}

const kill: Action = async (world, { choose }) => {
  const replica = choose(world.replicas);
  if (replica.stopped) return 'kill nobody';
  await replica.kill();
  await replica.start();
  return `kill ${replica.name}`;
};

const freeze: Action = async (world, { random, choose }) => {
  const replica = choose(world.replicas);
  if (!replica.running || world.replicas.some((other) => other.stopped)) return 'freeze nobody';
  replica.stop();
  const ms = 500 + Math.floor(random() * 6_000);
  await systemClock.sleep(ms);
  replica.resume();
  return `freeze ${replica.name} for ${ms} ms`;
};

const outage: Action = async (world, { random }) => {
  const ms = Math.floor(random() * 5_000);
  await world.server.kill9();
  await systemClock.sleep(ms);
  await world.server.restart();
  return `API server away for ${ms} ms and its start`;
};

const trouble: Action = async (world, { random, choose }) => {
  const replica = choose(world.replicas);
  const times = 1 + Math.floor(random() * 6);
  const fault = choose([
    { kind: 'dropBefore' },
    { kind: 'dropAfter' },
    { kind: 'delay', ms: 150, when: 'after' },
    { kind: 'status', code: 429, retryAfterSeconds: 1 },
    { kind: 'status', code: 503 },
  ] as const);
  replica.fault({ match: (request) => request.verb !== 'watch', times, fault });
  if (random() < 0.3) replica.cut();
  return `${fault.kind} for ${times} requests of ${replica.name}`;
};

const actions: readonly (readonly [weight: number, action: Action])[] = [
  [5, publish],
  [4, edit],
  [3, vanish],
  [3, addForeign],
  [1, seize],
  [3, kill],
  [2, freeze],
  [2, outage],
  [4, trouble],
];

/** Picks one by its weight, does it, and tells what it was. */
export function act(world: World, chance: Chance): Promise<string> {
  const total = actions.reduce((sum, [weight]) => sum + weight, 0);
  let at = chance.random() * total;
  for (const [weight, action] of actions) {
    at -= weight;
    if (at < 0) return action(world, chance);
  }
  return publish(world, chance);
}
