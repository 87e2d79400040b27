/** Evidence of real daemons: a standalone central with northd, a node with its switch and controller, and each of them hung. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { NorthdFacts } from '../../constructs/api/evidence/central.ts';
import { type EvidenceOf, parseEvidence } from '../../constructs/api/evidence.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { type DataPlaneMemory, judgeDataPlane } from '../../executor/observe/dataplane.ts';
import { registryOf } from '../../executor/observe/registry.ts';
import { centralCollectors } from '../../probes/central/collect.ts';
import { chassisCollectors } from '../../probes/chassis/collect.ts';
import { answer } from '../../probes/server/answer.ts';
import type { Collectors } from '../../probes/server/collector.ts';
import { ControlSocket } from '../../probes/unixctl/control.ts';
import { findControl } from '../../probes/unixctl/find.ts';
import { centralRound, centralSample, chassisRound, chassisSample } from '../pure/observe-support.ts';
import { type Env, eventually, OvnBed, pidOf, type ScriptRun } from './bed.ts';

interface Context {
  bed: OvnBed;
  central: Env;
  node: Env;
  member: ScriptRun;
}

const nonce = 'ab'.repeat(16);
const subject = {
  namespace: 'kube-system',
  pod: 'ovn-central-0',
  podUID: '00000000-0000-4000-8000-000000000001',
  container: 'keelson-probe',
  node: 'node-a',
  nodeBootID: 'boot',
};
const limitMs = 5000;
const directory = (env: Env, name: string): string => env[name] ?? '';

/** An answer as the executor reads it. */
async function asked<K extends 'central' | 'chassis'>(kind: K, collectors: Collectors<K>): Promise<EvidenceOf<K>> {
  const input = {
    kind,
    nonce,
    question: '',
    subject,
    version: 'test',
    collectors,
    clock: systemClock,
    stuck: new Set<string>(),
    signal: AbortSignal.timeout(30_000),
  };
  const reading = parseEvidence(Buffer.from(await answer(input)), { kind, nonce });
  if (reading.outcome !== 'evidence') throw new Error(JSON.stringify(reading));
  return reading.evidence;
}

const central = (env: Env, limit = limitMs) =>
  asked(
    'central',
    centralCollectors({
      clock: systemClock,
      runDirectory: directory(env, 'OVN_RUNDIR'),
      dataDirectory: directory(env, 'OVN_DBDIR'),
      limitMs: limit,
    }),
  );
const chassis = (env: Env, limit = limitMs) =>
  asked(
    'chassis',
    chassisCollectors({
      clock: systemClock,
      switchDirectory: directory(env, 'OVS_RUNDIR'),
      controllerDirectory: directory(env, 'OVN_RUNDIR'),
      bridge: 'br-int',
      limitMs: limit,
    }),
  );

/** Waits until an answer is whole and as described. */
function until<E extends EvidenceOf<'central'> | EvidenceOf<'chassis'>>(
  what: string,
  ask: () => Promise<E>,
  wanted: (evidence: E) => boolean,
): Promise<E> {
  return eventually(what, async (saw) => {
    const evidence = await ask();
    saw(JSON.stringify([evidence.facts, evidence.problems]));
    return wanted(evidence) ? evidence : undefined;
  });
}

const northdIs = (state: NorthdFacts['state']) => (evidence: EvidenceOf<'central'>) =>
  evidence.complete && evidence.facts.northd?.state === state && evidence.facts.northd.nb && evidence.facts.northd.sb;

async function command(dir: string, program: string, name: string): Promise<void> {
  const found = await findControl(dir, program);
  if (found.type !== 'ok') throw new Error(found.message);
  const control = await ControlSocket.open({
    daemon: program,
    path: found.value.path,
    clock: systemClock,
    limitMs: 3000,
  });
  if (control.type !== 'ok') throw new Error(control.message);
  const outcome = await control.value.command(name);
  control.value.close();
  assert.is(outcome.type, 'ok', JSON.stringify(outcome));
}

/** Stops a daemon, asks, and lets it go on. */
async function whileHung<T>(bed: OvnBed, env: Env, pidFile: string, ask: () => Promise<T>): Promise<T> {
  const pid = String(await pidOf(pidFile));
  await bed.command(['kill', '-STOP', pid], env);
  try {
    return await ask();
  } finally {
    await bed.command(['kill', '-CONT', pid], env);
  }
}

const test = suite<Context>('facts');

test.before(async (context) => {
  const bed = await OvnBed.start();
  const env = { ...bed.dirs('central'), POD_IP: '127.0.0.2', NODE_IPS: '', OVN_LEADER_PROBE_INTERVAL: '1' };
  const node = { ...bed.dirs('node'), NODE_NAME: 'node-a', POD_IP: '127.0.0.10', OVN_DB_IPS: '127.0.0.2' };
  const member = bed.script('start-db.sh', env);
  bed.script('start-ovs.sh', node);
  Object.assign(context, { bed, central: env, node, member });
});
test.after(async ({ bed }) => bed.close());

test('central: standalone databases, an active northd, listeners, versions, progress', async ({ central: env }) => {
  const { facts } = await until('an active northd', () => central(env), northdIs('active'));
  for (const [key, name, port] of [
    ['nb', 'OVN_Northbound', 6641],
    ['sb', 'OVN_Southbound', 6642],
  ] as const) {
    const database = facts[key];
    assert.equal(
      [database?.name, database?.model, database?.status, database?.connected, database?.leading, database?.storage],
      [name, 'standalone', 'standalone', true, true, 'ok'],
    );
    assert.equal(database?.listeners, [`ptcp:${port}:[127.0.0.2]`]);
    assert.equal(
      [database?.cid, database?.term, database?.members, database?.index],
      [undefined, undefined, [], undefined],
    );
  }
  assert.match(facts.northd?.version ?? '', /^[0-9]+\.[0-9]+/);
  assert.match(facts.progress?.northdInternalVersion ?? '', /^[0-9]+\.[0-9]+/);
  assert.equal(
    [facts.progress?.nbCfg, facts.progress?.hvCfg].map((text) => /^[0-9]+$/.test(text ?? '')),
    [true, true],
  );
});

test('chassis: who it is, where it looks, what it has', async ({ node: env, bed, central: centralEnv }) => {
  const { facts } = await until(
    'a connected chassis with br-int',
    () => chassis(env),
    (evidence) =>
      evidence.complete &&
      evidence.facts.controller?.connected === true &&
      evidence.facts.vswitchd?.bridge.inVswitchd === true,
  );
  assert.equal(facts.ovsdb?.encaps, [{ type: 'geneve', ip: '127.0.0.10' }]);
  assert.equal(
    [facts.ovsdb?.hostname, facts.ovsdb?.remote, facts.ovsdb?.matchNorthdVersion],
    ['node-a', 'tcp:[127.0.0.2]:6642', false],
  );
  const listed = await bed.command(
    [
      'ovn-sbctl',
      '--timeout=5',
      `--db=unix:${directory(centralEnv, 'OVN_RUNDIR')}/ovnsb_db.sock`,
      '--bare',
      '--columns=name',
      'list',
      'Chassis',
    ],
    centralEnv,
  );
  assert.is(facts.ovsdb?.systemID, listed.out);
  const { facts: told } = await central(centralEnv);
  assert.equal([told.sb?.chassis?.count, told.sb?.chassis?.names], [1, [listed.out]]);
  assert.is(told.nb?.chassis, undefined);
  assert.equal(facts.vswitchd?.bridge, { name: 'br-int', inVswitchd: true, datapath: 'netdev' });
  assert.is(facts.controller?.paused, false);
});

test('a change comes through: nb_cfg is followed by sb_cfg and hv_cfg', async ({ bed, central: env }) => {
  const { facts: before } = await central(env);
  const synced = await bed.command(
    ['ovn-nbctl', '--timeout=15', `--db=unix:${directory(env, 'OVN_RUNDIR')}/ovnnb_db.sock`, '--wait=hv', 'sync'],
    env,
  );
  assert.ok(synced.ok, synced.out);
  const { facts: after } = await central(env);
  const wanted = String(BigInt(before.progress?.nbCfg ?? 0) + 1n);
  assert.equal([after.progress?.nbCfg, after.progress?.sbCfg, after.progress?.hvCfg], [wanted, wanted, wanted]);
  assert.equal(after.sb?.chassis?.behind, []);
  assert.ok(before.sb?.row !== undefined && after.sb?.row === before.sb.row, 'the database was not opened anew');
});

test('9.4: an ovn-controller that waits for its northd is told as frozen when the real one is, in whatever case it was told to', async ({
  bed,
  central: env,
  node,
}) => {
  const run = directory(env, 'OVN_RUNDIR');
  const must = async (...argv: string[]): Promise<void> => {
    const done = await bed.command(argv, node);
    assert.ok(done.ok, done.out);
  };
  const sbctl = ['ovn-sbctl', '--timeout=5', `--db=unix:${run}/ovnsb_db.sock`];
  const vsctl = ['ovs-vsctl', '--timeout=5', `--db=unix:${directory(node, 'OVS_RUNDIR')}/db.sock`];
  const judged = async (): Promise<string> => {
    const [{ facts: told }, { facts }] = await Promise.all([central(env), chassis(node)]);
    const round = chassisRound(1, (n) => chassisSample(n, facts));
    const rules = { tick: 0, bridge: 'br-int', northd: told.progress?.northdInternalVersion };
    const { condition } = judgeDataPlane(round, rules, {});
    return `${condition.status}/${condition.reason}`;
  };
  const log = () => readFile(join(directory(node, 'OVN_LOGDIR'), 'ovn-controller.log'), 'utf8');
  await must(...vsctl, 'set', 'open', '.', 'external-ids:ovn-match-northd-version=True');
  assert.is(await judged(), 'True/ChassisConnected');
  // Paused, so that it does not set its version right at once.
  await command(run, 'ovn-northd', 'pause');
  await must(...sbctl, 'set', 'SB_Global', '.', 'options:northd_internal_version="99.9.9-1.1.1-1.1"');
  await eventually('the real one to freeze', async (saw) => {
    const text = await log();
    saw(text.slice(-400));
    return text.includes('mismatch with northd version') ? true : undefined;
  });
  const { facts } = await chassis(node);
  assert.equal([facts.controller?.connected, facts.ovsdb?.matchNorthdVersion], [true, true]);
  assert.is(await judged(), 'False/ChassisFrozen');
  await must(...vsctl, 'remove', 'open', '.', 'external-ids', 'ovn-match-northd-version');
  await command(run, 'ovn-northd', 'resume');
  await until('an active northd', () => central(env), northdIs('active'));
  assert.is(await judged(), 'True/ChassisConnected');
});

test('21.12: a connected ovn-controller that can not write its chassis is told, and well again once it can', async ({
  bed,
  central: env,
  node,
}) => {
  const sbctl = async (...argv: string[]): Promise<void> => {
    const base = ['ovn-sbctl', '--timeout=5', `--db=unix:${directory(env, 'OVN_RUNDIR')}/ovnsb_db.sock`];
    const done = await bed.command([...base, ...argv], env);
    assert.ok(done.ok, done.out);
  };
  let memory: DataPlaneMemory = {};
  const judged = async (): Promise<string> => {
    const [told, { facts }] = await Promise.all([central(env), chassis(node)]);
    const seen = {
      ...centralRound(1),
      samples: [{ ...centralSample(1, 1), second: { type: 'Evidence' as const, evidence: told } }],
    };
    const rules = { tick: 0, bridge: 'br-int', northd: undefined, registry: registryOf(seen) };
    const found = judgeDataPlane(
      chassisRound(1, (n) => chassisSample(n, facts)),
      rules,
      memory,
    );
    memory = found.memory;
    return `${facts.controller?.connected} ${found.condition.status}/${found.condition.reason}`;
  };
  const until = (wanted: string): Promise<true> =>
    eventually(wanted, async (saw) => {
      const now = await judged();
      saw(now);
      return now === wanted ? true : undefined;
    });
  const { facts } = await chassis(node);
  // What a node that was made anew meets: the chassis of the former one has its tunnel address.
  await sbctl('chassis-del', facts.ovsdb?.systemID ?? '', '--', 'chassis-add', 'former', 'geneve', '127.0.0.10');
  await until('true False/ChassisUnlisted');
  await sbctl('chassis-del', 'former');
  await until('true True/ChassisConnected');
});

test('northd: paused, then standby beside another that is active, then active again', async ({ bed, central: env }) => {
  const run = directory(env, 'OVN_RUNDIR');
  await command(run, 'ovn-northd', 'pause');
  await until('a paused northd', () => central(env), northdIs('paused'));
  const second = { ...env, OVN_RUNDIR: join(bed.dir, 'second') };
  await bed.command(['mkdir', second.OVN_RUNDIR], env);
  const remotes = ['nb', 'sb'].map((key) => `--ovn${key}-db=unix:${run}/ovn${key}_db.sock`);
  const other = bed.daemon(['ovn-northd', '-vconsole:off', '--pidfile', ...remotes], second);
  const northd = { ...second, OVN_DBDIR: directory(env, 'OVN_DBDIR') };
  await until(
    'another northd that is active',
    () => central(northd),
    ({ facts }) => facts.northd?.state === 'active',
  );
  await command(run, 'ovn-northd', 'resume');
  await until('a standby northd', () => central(env), northdIs('standby'));
  await bed.crash(other);
  await until('an active northd again', () => central(env), northdIs('active'));
});

test('a hung daemon is a problem that names it, and the others answer', async ({ bed, central: env, node }) => {
  const at = (dir: string, file: string): string => join(dir, file);
  const [run, switchDir] = [directory(env, 'OVN_RUNDIR'), directory(node, 'OVS_RUNDIR')];
  const northbound = await whileHung(bed, env, at(run, 'ovnnb_db.pid'), () => central(env, 500));
  assert.not(northbound.complete);
  assert.equal(
    northbound.problems.map(({ component, code }) => [component, code]),
    [
      ['nb', 'timeout'],
      ['progress', 'timeout'],
    ],
  );
  for (const { message } of northbound.problems)
    assert.match(message, /^ovsdb-server \(OVN_Northbound\): no answer to /);
  assert.equal([northbound.facts.sb?.connected, northbound.facts.northd?.sb], [true, true]);

  const northd = await whileHung(bed, env, at(run, 'ovn-northd.pid'), () => central(env, 500));
  assert.equal(
    northd.problems.map(({ component, code, message }) => [component, code, message]),
    [['northd', 'timeout', 'ovn-northd: no answer to status within 400 ms']],
  );

  const controllerPid = at(directory(node, 'OVN_RUNDIR'), 'ovn-controller.pid');
  const controller = await whileHung(bed, node, controllerPid, () => chassis(node, 500));
  assert.equal(
    controller.problems.map(({ component, code }) => [component, code]),
    [['controller', 'timeout']],
  );
  const frozen = await whileHung(bed, node, at(switchDir, 'ovs-vswitchd.pid'), () => chassis(node, 500));
  assert.equal(
    frozen.problems.map(({ component, code }) => [component, code]),
    [['vswitchd', 'timeout']],
  );
  assert.is(frozen.facts.ovsdb?.hostname, 'node-a', 'the database of a frozen switch still tells of its bridge');
  const back = await until(
    'everything back',
    () => chassis(node),
    ({ complete }) => complete,
  );
  assert.is(back.facts.vswitchd?.bridge.inVswitchd, true);
});

test('a bridge that is only configured is not there; another controller is another daemon', async ({ bed, node }) => {
  const before = await chassis(node);
  const other = await asked(
    'chassis',
    chassisCollectors({
      clock: systemClock,
      switchDirectory: directory(node, 'OVS_RUNDIR'),
      controllerDirectory: directory(node, 'OVN_RUNDIR'),
      bridge: 'br-other',
      limitMs,
    }),
  );
  assert.equal([other.facts.vswitchd?.bridge.name, other.facts.vswitchd?.bridge.inVswitchd], ['br-other', false]);
  const pid = await pidOf(join(directory(node, 'OVN_RUNDIR'), 'ovn-controller.pid'));
  await bed.command(['kill', '-SEGV', String(pid)], node);
  const after = await until(
    'another ovn-controller',
    () => chassis(node),
    ({ complete, facts }) =>
      complete && facts.controller?.daemon.startTicks !== before.facts.controller?.daemon.startTicks,
  );
  assert.equal(after.facts.vswitchd?.daemon, before.facts.vswitchd?.daemon);
  assert.equal(after.facts.ovsdb?.systemID, before.facts.ovsdb?.systemID);
});

test('nobody there: every component is a problem that says so', async ({ bed, central: env, member }) => {
  assert.is(await bed.stop(member), 0);
  const stopped = await central(env);
  assert.equal(
    stopped.problems.map(({ component, code }) => [component, code]),
    [
      ['nb', 'refused'],
      ['sb', 'refused'],
      ['northd', 'refused'],
      ['progress', 'refused'],
    ],
  );
  const nowhere = await chassis({ OVS_RUNDIR: '/absent', OVN_RUNDIR: '/absent' });
  assert.equal(
    nowhere.problems.map(({ code }) => code),
    ['refused', 'refused', 'refused'],
  );
});

test.run();
