import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  declaredMultiStates,
  fromKube,
  Machine,
  type MachineConfig,
  MachineError,
  type MachineFault,
  machineFor,
  toKube,
  unabortableMultiStates,
  withClaim,
} from '../../constructs/lib/statemachine.ts';

type Step = 'Idle' | 'Working' | 'Done';
type Context = { fail?: boolean; inner?: () => Promise<void> };

let now = 1_000_000;
const clock = { now: () => now };
const config: MachineConfig<Step, Context> = {
  initial: 'Idle',
  states: {
    Idle: { to: ['Working'], abortable: true },
    Working: {
      to: ['Working', 'Done'],
      onEnter: async (context) => {
        if (context.fail) throw new Error('no disk');
        await context.inner?.();
        return 5000;
      },
    },
    Done: { to: [] },
  },
};

const faultOf = async (run: () => unknown): Promise<MachineFault | undefined> => {
  try {
    await run();
    return undefined;
  } catch (error) {
    return error instanceof MachineError ? error.fault : undefined;
  }
};

test('a machine is born in its initial state without a deadline, and arms one on entry', async () => {
  const machine = new Machine(config, clock);
  assert.equal(machine.snapshot(), { state: 'Idle' });
  await machine.transitionTo('Working', {});
  assert.equal(machine.snapshot(), { state: 'Working', deadline: now + 5000 });
  assert.is(machine.requeueAfter(), 5000);
  now += 5000;
  assert.ok(machine.timeoutReached());
  assert.is(machine.requeueAfter(), undefined);
  machine.extend(100);
  assert.not.ok(machine.timeoutReached());
  await machine.transitionTo('Done', {});
  assert.ok(machine.isTerminal());
  assert.equal(machine.snapshot(), { state: 'Done' });
});

test('a hook that throws changes nothing, and the guard is lowered', async () => {
  const machine = new Machine(config, clock);
  await machine.transitionTo('Working', {});
  const before = machine.snapshot();
  now += 10;
  assert.is(await faultOf(() => machine.transitionTo('Working', { fail: true })), 'hookFailed');
  assert.equal(machine.snapshot(), before);
  await machine.transitionTo('Working', {});
  assert.is(machine.snapshot().deadline, now + 5000);
});

test('refusals: undeclared edges and states, a hook that moves its own machine, a closed machine', async () => {
  const machine = new Machine(config, clock);
  assert.is(await faultOf(() => machine.transitionTo('Done', {})), 'illegalTransition');
  let inner: MachineFault | undefined;
  await machine.transitionTo('Working', {
    inner: async () => {
      inner = await faultOf(() => machine.transitionTo('Done', {}));
    },
  });
  assert.is(inner, 'reentrant');
  assert.is(await faultOf(() => machine.restore({ state: 'Nowhere' })), 'unknownState');
  assert.is(machine.state, 'Working');
  machine.close();
  machine.close();
  assert.ok(machine.signal.aborted);
  assert.is(await faultOf(() => machine.transitionTo('Done', {})), 'closed');
  const broken = { initial: 'Idle', states: { Idle: { to: ['Lost'] } } } as unknown as MachineConfig<Step, Context>;
  assert.is(await faultOf(() => new Machine(broken, clock)), 'unknownState');
});

test('a restored deadline that passed meanwhile counts as reached; a missing one stays missing', () => {
  const machine = new Machine(config, clock);
  machine.restore({ state: 'Working', deadline: now - 1 });
  assert.ok(machine.timeoutReached());
  machine.reset();
  assert.equal(machine.snapshot(), { state: 'Idle' });
  assert.equal(toKube({ state: 'Working' }), { state: 'Working' });
  assert.equal(toKube({ state: 'Working', deadline: 0 }), { state: 'Working', deadline: '1970-01-01T00:00:00.000Z' });
  assert.is(fromKube({}), undefined);
  assert.equal(fromKube({ state: 'Working' }), { state: 'Working' });
});

test('a set of graphs is validated whole before an action is looked up', async () => {
  const other: MachineConfig<Step, Context> = {
    initial: 'Idle',
    states: { ...config.states, Working: { to: ['Done'], abortable: true } },
  };
  const graphs = { run: config, rest: other };
  assert.is(machineFor(graphs, 'run', clock, { state: 'Working' }).state, 'Working');
  assert.is(await faultOf(() => machineFor(graphs, 'fly', clock)), 'unknownAction');
  const broken = { ...graphs, zzz: { initial: 'Gone', states: {} } as unknown as MachineConfig<Step, Context> };
  assert.is(await faultOf(() => machineFor(broken, 'run', clock)), 'unknownState');
  assert.equal(unabortableMultiStates(graphs), ['Done', 'Working']);
  assert.equal(declaredMultiStates(graphs), ['Done', 'Idle', 'Working']);
});

test('a claim keeps a second pass from firing, expires, and counts its attempts', async () => {
  let fired = 0;
  const fire = async () => void fired++;
  let stored: Parameters<Parameters<typeof withClaim>[1]>[0] | undefined;
  const write = async (claim: typeof stored) => {
    stored = claim;
    return 'written' as const;
  };
  const options = () => ({ stored, state: 'Working', leaseMs: 1000, clock });
  assert.equal(await withClaim(options(), write, fire), { ran: true });
  assert.equal(await withClaim(options(), write, fire), { ran: false, reason: 'held' });
  now += 1000;
  assert.equal(await withClaim(options(), async () => 'conflict', fire), { ran: false, reason: 'conflict' });
  assert.equal(await withClaim(options(), write, fire), { ran: true });
  assert.is(stored?.attempt, 2);
  assert.is(fired, 2);
});

test.run();
