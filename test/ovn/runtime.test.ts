/** The entry scripts of the OVN runtime image, run for real: a RAFT cluster of three, northd, and a node. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Env, eventually, OvnBed, pidOf, type ScriptRun } from './bed.ts';
import { certificates } from './certificates.ts';

interface Context {
  bed: OvnBed;
  members: Map<string, ScriptRun>;
  node: ScriptRun;
}

const addresses = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];
const databases = { nb: 'OVN_Northbound', sb: 'OVN_Southbound' } as const;
type Short = keyof typeof databases;

const memberEnv = (bed: OvnBed, ip: string, nodeIPs = addresses.join(',')): Env => ({
  ...bed.dirs(`central-${ip}`),
  NODE_IPS: nodeIPs,
  POD_IP: ip,
  OVN_ELECTION_TIMER: '1000',
  OVN_LEADER_PROBE_INTERVAL: '1',
});
const nodeEnv = (bed: OvnBed): Env => ({
  ...bed.dirs('node-a'),
  NODE_NAME: 'node-a',
  POD_IP: '127.0.0.10',
  OVN_DB_IPS: addresses.join(','),
});

const control = (env: Env, db: Short): string => join(env.OVN_RUNDIR ?? '', `ovn${db}_db.ctl`);
async function status(bed: OvnBed, ip: string, db: Short): Promise<string> {
  const env = memberEnv(bed, ip);
  return (await bed.command(['ovs-appctl', '-T', '3', '-t', control(env, db), 'cluster/status', databases[db]], env))
    .out;
}
const line = (text: string, key: string): string => new RegExp(`^${key}: (.*)$`, 'm').exec(text)?.[1] ?? '';
const members = (text: string): number => text.split('Servers:')[1]?.match(/^ {4}\S+ \(/gm)?.length ?? 0;

/** Waits until the given members all show the cluster with `size` servers and one leader, and answers that leader. */
function formed(bed: OvnBed, alive: readonly string[], db: Short, size: number): Promise<string> {
  return eventually(`${db} cluster of ${alive.join(', ')}`, async (saw) => {
    const seen = await Promise.all(alive.map(async (ip) => ({ ip, text: await status(bed, ip, db) })));
    saw(seen.map(({ ip, text }) => `${ip} ${line(text, 'Status')} ${line(text, 'Role')} ${members(text)}`).join('; '));
    const leaders = seen.filter(({ text }) => line(text, 'Leader') === 'self');
    const whole = seen.every(({ text }) => line(text, 'Status') === 'cluster member' && members(text) === size);
    return whole && leaders.length === 1 ? leaders[0]?.ip : undefined;
  });
}
async function northdStates(bed: OvnBed, alive: readonly string[]): Promise<string[]> {
  const asked = alive.map((ip) =>
    bed.command(['ovn-appctl', '-T', '3', '-t', 'ovn-northd', 'status'], memberEnv(bed, ip)),
  );
  return (await Promise.all(asked)).map(({ out }) => out);
}
const oneActive = (bed: OvnBed, alive: readonly string[]) =>
  eventually('one active northd', async (saw) => {
    const states = await northdStates(bed, alive);
    saw(states.join('; '));
    const active = states.filter((state) => state === 'Status: active').length;
    return active === 1 && states.every((state) => /^Status: (active|standby)$/.test(state)) ? true : undefined;
  });
const nbctl = (bed: OvnBed, ...args: string[]) =>
  bed.command(
    ['ovn-nbctl', '--timeout=15', `--db=${addresses.map((ip) => `tcp:${ip}:6641`).join(',')}`, ...args],
    bed.dirs('client'),
  );

/** The switch does not offer ovn-controller the all-zero source NAT by which it would end some day (start-ovs.sh). */
async function withoutZeroSnat(bed: OvnBed): Promise<void> {
  const env = nodeEnv(bed);
  const offer = ['ovs-vsctl', '--timeout=5', 'get', 'Datapath', '.', 'capabilities:ct_zero_snat'];
  const told = await bed.command(offer, env);
  assert.is(told.out, '"false"', told.out);
  const log = await readFile(join(env.OVN_LOGDIR ?? '', 'ovn-controller.log'), 'utf8');
  assert.not.match(log, /ct_zero_snat, state: supported/);
}

const test = suite<Context>('runtime');

test.before(async (context) => {
  context.bed = await OvnBed.start();
  context.members = new Map();
});
test.after(async ({ bed }) => bed.close());

test('three members form one cluster for each database, the first bootstraps, the others join', async ({
  bed,
  members: runs,
}) => {
  for (const ip of [...addresses].reverse()) runs.set(ip, bed.script('start-db.sh', memberEnv(bed, ip)));
  for (const db of ['nb', 'sb'] as const) {
    await formed(bed, addresses, db, 3);
    const texts = await Promise.all(addresses.map((ip) => status(bed, ip, db)));
    assert.is(new Set(texts.map((text) => line(text, 'Cluster ID'))).size, 1);
    assert.is(new Set(texts.map((text) => line(text, 'Server ID'))).size, 3);
    assert.is(line(texts[0] ?? '', 'Election timer'), '1000');
  }
  await oneActive(bed, addresses);
  for (const ip of addresses) {
    const ready = await eventually('readiness', async (saw) => {
      const answer = await bed.probe('ovn-healthcheck.sh', memberEnv(bed, ip));
      saw(answer.out);
      return answer.ok ? answer : undefined;
    });
    assert.ok(ready.ok);
  }
});

test('a member listens on its own address only, and serves its listener database beside the real one', async ({
  bed,
}) => {
  const listed = await bed.command(
    ['ovsdb-client', '--timeout=5', 'list-dbs', 'tcp:127.0.0.3:6641'],
    bed.dirs('client'),
  );
  assert.equal(listed.out.split('\n').sort(), ['Local_Config', 'OVN_Northbound', '_Server']);
  assert.not(
    (await bed.command(['ovsdb-client', '--timeout=2', 'list-dbs', 'tcp:127.0.0.9:6641'], bed.dirs('client'))).ok,
  );
});

test('the leader keeps the cluster-wide options', async ({ bed }) => {
  await eventually('options of the northbound leader', async (saw) => {
    const { out } = await nbctl(bed, 'get', 'NB_Global', '.', 'options');
    saw(out);
    return out.includes('northd_probe_interval="5000"') && out.includes('inactivity_probe="180000"') ? true : undefined;
  });
});

test('a node registers its chassis, makes br-int, and applies what is written northbound', async (context) => {
  const { bed } = context;
  context.node = bed.script('start-ovs.sh', nodeEnv(bed));
  await eventually('the chassis in the southbound database', async (saw) => {
    const { out } = await bed.command(
      [
        'ovn-sbctl',
        '--timeout=5',
        '--db=tcp:127.0.0.2:6642',
        '--no-leader-only',
        '--bare',
        '--columns=hostname',
        'list',
        'Chassis',
      ],
      bed.dirs('client'),
    );
    saw(`${out}\n${context.node.output()}`);
    return out === 'node-a' ? true : undefined;
  });
  assert.ok((await nbctl(bed, 'ls-add', 'probe')).ok);
  const applied = await nbctl(bed, '--wait=hv', 'sync');
  assert.ok(applied.ok, applied.out);
  const env = nodeEnv(bed);
  assert.match((await bed.command(['ovs-appctl', '-t', 'ovs-vswitchd', 'ofproto/list'], env)).out, /^br-int$/m);
  assert.ok((await bed.probe('ovs-healthcheck.sh', env)).ok);
  await withoutZeroSnat(bed);
});

test('an ovn-controller that crashes is started again in place, the other daemons stay', async (context) => {
  const { bed, node } = context;
  const env = nodeEnv(bed);
  const files = {
    controller: join(env.OVN_RUNDIR ?? '', 'ovn-controller.pid'),
    switch: join(env.OVS_RUNDIR ?? '', 'ovs-vswitchd.pid'),
  };
  const [controller, vswitch] = [await pidOf(files.controller), await pidOf(files.switch)];
  await bed.command(['kill', '-SEGV', String(controller)], env);
  await eventually('another ovn-controller', async (saw) => {
    saw(node.output());
    const healthy = (await bed.probe('ovs-healthcheck.sh', env)).ok;
    return healthy && (await pidOf(files.controller)) !== controller ? true : undefined;
  });
  assert.is(await pidOf(files.switch), vswitch);
  assert.match(node.output(), /ovn-controller ended with code 139; starts it again/);
});

test('a second pod on the node takes the daemons over and the first one lets go', async (context) => {
  const { bed, node: first } = context;
  const env = nodeEnv(bed);
  const pidFile = join(env.OVS_RUNDIR ?? '', 'ovs-vswitchd.pid');
  const before = await pidOf(pidFile);
  const chassis = await readFile(join(env.OVS_DBDIR ?? '', 'system-id.conf'), 'utf8');
  const second = bed.script('start-ovs.sh', env);
  await eventually('the first pod to let go', async (saw) => {
    saw(first.output());
    return first.output().includes('another pod took the daemons over') ? true : undefined;
  });
  await eventually('new daemons', async () => ((await bed.probe('ovs-healthcheck.sh', env)).ok ? true : undefined));
  assert.is.not(await pidOf(pidFile), before);
  assert.is(await bed.stop(first), 0);
  assert.ok((await bed.probe('ovs-healthcheck.sh', env)).ok, 'the daemons outlive the first pod');
  assert.is(await readFile(join(env.OVS_DBDIR ?? '', 'system-id.conf'), 'utf8'), chassis);
  await withoutZeroSnat(bed);
  context.node = second;
  const synced = await nbctl(bed, '--wait=hv', 'sync');
  assert.ok(synced.ok, synced.out);
});

test('a member that stops and starts again keeps its server id', async ({ bed, members: runs }) => {
  const ip = '127.0.0.3';
  const before = await Promise.all(
    (['nb', 'sb'] as const).map(async (db) => line(await status(bed, ip, db), 'Server ID')),
  );
  const stopped = runs.get(ip);
  assert.ok(stopped);
  assert.is(await bed.stop(stopped), 0, stopped.output());
  runs.set(ip, bed.script('start-db.sh', memberEnv(bed, ip)));
  for (const db of ['nb', 'sb'] as const) await formed(bed, addresses, db, 3);
  const after = await Promise.all(
    (['nb', 'sb'] as const).map(async (db) => line(await status(bed, ip, db), 'Server ID')),
  );
  assert.equal(after, before);
});

test('kill -9 of the northbound leader leaves a quorum that elects, writes and has one active northd', async ({
  bed,
  members: runs,
}) => {
  const leader = await formed(bed, addresses, 'nb', 3);
  const victim = runs.get(leader);
  assert.ok(victim);
  await bed.crash(victim);
  const rest = addresses.filter((ip) => ip !== leader);
  for (const db of ['nb', 'sb'] as const) assert.is.not(await formed(bed, rest, db, 3), leader);
  assert.ok((await nbctl(bed, 'ls-add', 'written-without-one')).ok);
  await oneActive(bed, rest);
  assert.ok((await nbctl(bed, '--wait=hv', 'sync')).ok);
  runs.set(leader, bed.script('start-db.sh', memberEnv(bed, leader)));
  for (const db of ['nb', 'sb'] as const) await formed(bed, addresses, db, 3);
  const ownRows = ['--no-leader-only', `--db=tcp:${leader}:6641`, '--bare', '--columns=name', 'list', 'Logical_Switch'];
  await eventually('the row on the member that was away', async (saw) => {
    const { out } = await bed.command(['ovn-nbctl', '--timeout=5', ...ownRows], bed.dirs('client'));
    saw(out);
    return out.includes('written-without-one') ? true : undefined;
  });
});

test('without quorum a member is not ready but alive again once it is back', async ({ bed, members: runs }) => {
  const [first = '', second = '', third = ''] = addresses;
  for (const ip of [second, third]) {
    const victim = runs.get(ip);
    assert.ok(victim);
    await bed.crash(victim);
  }
  await eventually('a refused readiness probe', async (saw) => {
    const answer = await bed.probe('ovn-healthcheck.sh', memberEnv(bed, first));
    saw(answer.out);
    return !answer.ok && answer.out.includes('has no leader') ? true : undefined;
  });
  runs.set(second, bed.script('start-db.sh', memberEnv(bed, second)));
  for (const db of ['nb', 'sb'] as const) await formed(bed, [first, second], db, 3);
  await eventually('readiness', async () =>
    (await bed.probe('ovn-healthcheck.sh', memberEnv(bed, first))).ok ? true : undefined,
  );
});

test('an address outside NODE_IPS and a clustered file without NODE_IPS are refused', async ({
  bed,
  members: runs,
}) => {
  const stranger = bed.script('start-db.sh', memberEnv(bed, '127.0.0.5'));
  assert.is(await stranger.ended, 1);
  assert.match(stranger.output(), /127\.0\.0\.5 is not in NODE_IPS/);
  const stopped = runs.get('127.0.0.2');
  assert.ok(stopped);
  await bed.stop(stopped);
  const alone = bed.script('start-db.sh', memberEnv(bed, '127.0.0.2', ''));
  assert.is(await alone.ended, 1);
  assert.match(alone.output(), /belongs to a cluster, but NODE_IPS is empty/);
});

test('a daemon that dies ends its member with an error', async ({ bed }) => {
  const env = { ...memberEnv(bed, '127.0.0.6', ''), OVN_RUNDIR: join(bed.dir, 'alone') };
  const alone = bed.script('start-db.sh', env);
  await eventually('the standalone member', async (saw) => {
    saw(alone.output());
    return (await bed.probe('ovn-healthcheck.sh', env)).ok ? true : undefined;
  });
  await bed.command(['kill', '-KILL', String(await pidOf(join(env.OVN_RUNDIR, 'ovnsb_db.pid')))], env);
  assert.is(await alone.ended, 1);
  assert.match(alone.output(), /ovsdb-server \(sb\) ended with code 137/);
});

test('with TLS the servers answer only to certificates of the same authority', async ({ bed }) => {
  const tls = join(bed.dir, 'tls');
  await certificates(tls);
  const ip = '127.0.0.7';
  const env = { ...memberEnv(bed, ip, ip), ENABLE_SSL: 'true', TLS_DIR: tls };
  const member = bed.script('start-db.sh', env);
  await eventually('the member with TLS', async (saw) => {
    saw(member.output());
    return (await bed.probe('ovn-healthcheck.sh', env)).ok ? true : undefined;
  });
  assert.equal(await northdStates(bed, [ip]), ['Status: active']);
  const listDatabases = ['list-dbs', `ssl:${ip}:6642`];
  const options = (dir: string) => ['-p', join(dir, 'key'), '-c', join(dir, 'cert'), '-C', join(tls, 'cacert')];
  const trusted = await bed.command(['ovsdb-client', '--timeout=5', ...options(tls), ...listDatabases], env);
  assert.match(trusted.out, /OVN_Southbound/);
  const other = join(bed.dir, 'tls-other');
  await certificates(other);
  assert.not((await bed.command(['ovsdb-client', '--timeout=3', ...options(other), ...listDatabases], env)).ok);
  assert.is(await bed.stop(member), 0);
});

test.run();
