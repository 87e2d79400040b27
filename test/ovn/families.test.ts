/**
 * A network whose addresses are of IPv6: members that prove themselves by TLS, a chassis with its tunnel, logical ports of both
 * families, and the way of evidence to a probe of such a node. What a node would take along is judged of what real SB says.
 */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ports, probeContainers } from '../../constructs/api/constants.ts';
import type { EvidenceKind, EvidenceOf } from '../../constructs/api/evidence.ts';
import { parseEvidence } from '../../constructs/api/evidence.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { pullEvidence } from '../../executor/evidence/pull.ts';
import type { ProbeTarget } from '../../executor/evidence/target.ts';
import { type DrainVerdict, judgeDrain } from '../../executor/observe/drain.ts';
import type { LoadPod } from '../../executor/observe/drain-load.ts';
import type { Outcome } from '../../executor/observe/round.ts';
import { emptyMemory, judgeRound } from '../../executor/observe/verdict.ts';
import { bundleProbe, probeEnvironment, probeFlags } from '../../images/probe.ts';
import { centralCollectors } from '../../probes/central/collect.ts';
import { chassisCollectors } from '../../probes/chassis/collect.ts';
import { answer } from '../../probes/server/answer.ts';
import type { Collectors } from '../../probes/server/collector.ts';
import { downwardOf, executorBed, subjectOf, tokenOf } from '../pure/evidence-bed.ts';
import { specOf } from '../pure/network-fixture.ts';
import { centralRound, chassisRound, nodeFacts } from '../pure/observe-support.ts';
import { type Env, eventually, OvnBed, type ScriptRun } from './bed.ts';
import { certificates } from './certificates.ts';
import { probePods } from './probe-pods.ts';

const test = suite('families');
const addresses = [1, 2, 3].map((n) => `fd00::${n}`);
const nodeAddress = 'fd00::10';
const bed = await OvnBed.start();
const executor = await executorBed();
const tls = { ENABLE_SSL: 'true', TLS_DIR: join(bed.dir, 'tls') };
const members = addresses.map(
  (address, n): Env => ({
    ...bed.dirs(`member-${n + 1}`),
    ...tls,
    POD_IP: address,
    // Clients of the other family find it as well.
    POD_IPS: `${address},127.0.0.${n + 1}`,
    NODE_IPS: addresses.join(','),
    OVN_LEADER_PROBE_INTERVAL: '1',
    OVN_ELECTION_TIMER: '1000',
  }),
);
const node: Env = {
  ...bed.dirs('node'),
  ...tls,
  NODE_NAME: 'n1',
  POD_IP: nodeAddress,
  OVN_DB_IPS: addresses.join(','),
};
const runs: ScriptRun[] = [];
/** The probe as its image holds it. */
let program = '';

test.before(async () => {
  await certificates(tls.TLS_DIR);
  for (const address of [...addresses, nodeAddress]) {
    const added = await bed.command(['ip', '-6', 'address', 'add', `${address}/128`, 'dev', 'lo', 'nodad'], node);
    assert.ok(added.ok, added.out);
  }
  await executor.believe([await executor.newAuthority('first')]);
  for (const member of members) runs.push(bed.script('start-db.sh', member));
  bed.script('start-ovs.sh', node);
});
test.after(async () => {
  await bed.close();
  await executor.stop();
});

/** An answer over the wire's own schema. */
async function asked<K extends EvidenceKind>(kind: K, collectors: Collectors<K>): Promise<Outcome<K>> {
  const nonce = 'ab'.repeat(16);
  const input = { kind, nonce, question: '', subject: subjectOf(1), version: 'test', collectors, clock: systemClock };
  const stop = { stuck: new Set<string>(), signal: AbortSignal.timeout(30_000) };
  const read = parseEvidence(Buffer.from(await answer({ ...input, ...stop })), { kind, nonce });
  if (read.outcome !== 'evidence') throw new Error(JSON.stringify(read));
  return { type: 'Evidence', evidence: read.evidence };
}

const common = { clock: systemClock, limitMs: 3_000 };
const folder = (env: Env, name: string): string => env[name] ?? '';
const central = (env: Env): Promise<Outcome<'central'>> =>
  asked(
    'central',
    centralCollectors({
      ...common,
      runDirectory: folder(env, 'OVN_RUNDIR'),
      dataDirectory: folder(env, 'OVN_DBDIR'),
    }),
  );
const chassis = (): Promise<Outcome<'chassis'>> =>
  asked(
    'chassis',
    chassisCollectors({
      ...common,
      bridge: 'br-int',
      switchDirectory: folder(node, 'OVS_RUNDIR'),
      controllerDirectory: folder(node, 'OVN_RUNDIR'),
    }),
  );

test('members, northd and a chassis of IPv6 pass in one round, and the topology that is recorded names their addresses', async () => {
  const pass = () => Promise.all(members.map(central));
  const verdict = await eventually('a round in which all is well', async (saw) => {
    const [first, second, told] = [await pass(), await pass(), await chassis()];
    const well = centralRound(3);
    const samples = well.samples.map((sample, n) => ({
      ...sample,
      first: first[n] ?? sample.first,
      second: second[n] ?? sample.second,
    }));
    const time = { startedAt: 0, endedAt: 1, startedTick: 0, endedTick: 1 };
    const [at] = chassisRound(1).samples;
    assert.ok(at);
    const installation = { namespace: 'kube-system', name: 'main', uid: 'uid-1' };
    const judged = judgeRound(
      {
        time,
        central: { ...well, samples },
        chassis: { ...chassisRound(1), samples: [{ ...at, outcome: told }] },
        peer: { type: 'noProvider' },
      },
      { spec: specOf({ networkStack: 'ipv6' }), installation, chartReplicas: 3, pin: undefined },
      emptyMemory,
    );
    saw(JSON.stringify(judged.conditions));
    const three = judged.conditions.slice(0, 3).map(({ type, status }) => `${type} ${status}`);
    return three.join() === 'OVNDBReady True,NorthdReady True,DataPlaneReady True' ? { judged, told } : undefined;
  });
  const { told, judged } = verdict;
  const facts = told.type === 'Evidence' ? told.evidence.facts : {};
  assert.equal(facts.ovsdb?.encaps, [{ type: 'geneve', ip: nodeAddress }]);
  assert.match(facts.ovsdb?.remote ?? '', 'ssl:[fd00::1]:6642');
  assert.equal(
    judged.toRecord?.members.map(({ nb, sb }) => [nb.address, sb.address]),
    addresses.map((address) => [`ssl:[${address}]:6643`, `ssl:[${address}]:6644`]),
  );
  assert.match(judged.toRecord?.members[0]?.sb.listeners.join(' ') ?? '', 'pssl:6642:[127.0.0.1] pssl:6642:[fd00::1]');
});

/** The probe of the node, and the executor's end, both at addresses of IPv6. */
async function drainProbe(): Promise<() => Promise<EvidenceOf<'drain'>>> {
  const source = (path: string): string => fileURLToPath(new URL(`../../bin/${path}`, import.meta.url));
  program = await bundleProbe({ entry: source('probe.ts'), offer: source('probe-offer.ts') }, executor.directory);
  const subject = { ...subjectOf(1), node: 'n1', container: probeContainers.drain };
  executor.know(subject);
  const trust = join(executor.directory, 'trust');
  await mkdir(trust);
  await symlink(executor.authoritiesFile, join(trust, 'ca.crt'));
  await writeFile(join(trust, 'token'), tokenOf(subject));
  const places = ['--trust', trust, '--ovs-run', folder(node, 'OVS_RUNDIR'), '--ovn-tls', tls.TLS_DIR];
  const started = bed.daemon([process.execPath, ...probeFlags, program, 'probe', 'drain', ...places], {
    ...probeEnvironment,
    ...downwardOf(subject),
    POD_IPS: nodeAddress,
    PATH: String(node.PATH),
  });
  await eventually('the probe to listen', async (saw) => {
    saw(started.output());
    return started.output().includes('listening') ? true : undefined;
  });
  // Spelled as a kubelet may spell it: one address has many forms.
  const target: ProbeTarget<'drain'> = { ...subject, kind: 'drain', addresses: ['fd00:0:0:0::10'] };
  const options = executor.pulling([ports.drain], {
    limitMs: 20_000,
    ways: ({ addresses: [host = ''] }) => [async (port) => ({ type: 'open', stream: bed.connect(host, port) })],
  });
  return async () => {
    const outcome = await pullEvidence(target, options, AbortSignal.timeout(30_000));
    if (outcome.type !== 'Evidence') throw new Error(JSON.stringify(outcome));
    return outcome.evidence;
  };
}

const judged = (evidence: EvidenceOf<'drain'>, pods: readonly LoadPod[] = []): DrainVerdict =>
  judgeDrain({
    node: 'n1',
    live: nodeFacts(1, { unschedulable: true }),
    host: { type: 'Evidence', evidence },
    load: { type: 'read', load: { pods, attached: [] } },
    others: [],
  });
const told = (verdict: DrainVerdict): string => {
  if (verdict.state === 'drained') return 'drained';
  const why = verdict.state === 'blocked' ? verdict.blockers : verdict.unknown;
  return `${verdict.state} ${why.map(({ reason }) => reason).join(' ')}`;
};

const vsctl = (...args: string[]) =>
  bed.command(['ovs-vsctl', `--db=unix:${node.OVS_RUNDIR}/db.sock`, '--timeout=5', ...args], node);
const onMember = (program: string, database: string, ...args: string[]) => {
  const db = `--db=unix:${members[0]?.OVN_RUNDIR}/${database}.sock`;
  return bed.command([program, '--no-leader-only', db, '--timeout=10', ...args], node);
};
const nbctl = (...args: string[]) => onMember('ovn-nbctl', 'ovnnb_db', ...args);

let ask: () => Promise<EvidenceOf<'drain'>>;

/** Waits for a verdict about the node. */
const until = (wanted: string, pods?: readonly LoadPod[]): Promise<EvidenceOf<'drain'>> =>
  eventually(wanted, async (saw) => {
    const evidence = await ask();
    const verdict = judged(evidence, pods);
    saw(JSON.stringify([verdict, evidence.facts, evidence.problems]));
    return told(verdict) === wanted ? evidence : undefined;
  });

test('what a node of IPv6 would take along: its gateway, and a port of both families, until both are gone', async () => {
  ask = await drainProbe();
  const { facts } = await until('drained');
  const systemID = String(facts.chassis?.systemID);
  const lines = [
    'lr-add r -- lrp-add r r-out 02:00:00:00:00:01 192.0.2.1/24 2001:db8::1/64 -- ls-add s -- lsp-add s s-r',
    '-- lsp-set-type s-r router -- lsp-set-addresses s-r router -- lsp-set-options s-r router-port=r-out',
    `-- lrp-set-gateway-chassis r-out ${systemID} 20 -- ls-add pods -- lsp-add pods web-1.shop`,
  ];
  const both = '02:00:00:00:01:05 10.16.0.5 fd00:10:16::5';
  const made = await nbctl(...lines.join(' ').split(' '), '--', 'lsp-set-addresses', 'web-1.shop', both);
  assert.ok(made.ok, made.out);
  const port = 'add-port br-int web-1 -- set Interface web-1 type=internal external_ids:iface-id=web-1.shop';
  const plugged = await vsctl(...port.split(' '));
  assert.ok(plugged.ok, plugged.out);
  const found = await until('blocked GatewayActive PortsBound');
  assert.equal(found.facts.gateways?.first, [{ port: 'cr-r-out', priority: 20, active: true, others: 0 }]);
  const row = ['--bare', '--columns=mac', 'find', 'Port_Binding', 'logical_port=web-1.shop'];
  assert.is((await onMember('ovn-sbctl', 'ovnsb_db', ...row)).out, both);
  // The same port, while its pod is there, and while it belongs to the node.
  const pod = { namespace: 'shop', name: 'web-1', claims: [] };
  assert.is(told(judged(found, [{ ...pod, stays: false }])), 'blocked PodsRemain GatewayActive');
  assert.is(told(judged(found, [{ ...pod, stays: true }])), 'blocked GatewayActive');
  assert.ok((await nbctl('lrp-del-gateway-chassis', 'r-out', systemID)).ok);
  assert.ok((await vsctl('del-port', 'br-int', 'web-1')).ok);
  await until('drained');
});

test('X22: packets of both families between pods that are ports of OVN, by address, Service and name; one family cut off', async () => {
  const { server, observe } = await probePods({ bed, executor, program, node, nbctl });
  const network = (wanted: string) =>
    eventually(wanted, async (saw) => {
      const { conditions, network: view } = await observe();
      const found = conditions.find(({ type }) => type === 'NetworkReady');
      saw(JSON.stringify(found));
      return `${found?.status}/${found?.reason}` === wanted ? { ...view, message: found?.message ?? '' } : undefined;
    });
  const { message: _message, ...view } = await network('True/PacketsDelivered');
  assert.equal(view, { nodes: 1, families: ['ipv4', 'ipv6'], checks: 6, passed: 6, missing: [] });
  // The port takes and gives packets of one family from now on.
  assert.ok((await nbctl('lsp-set-port-security', server.name, `${server.mac} ${server.addresses[0]}`)).ok);
  const cut = await network('False/ProbeFailed');
  assert.match(cut.message, /^IPv6 from node n1 to .* wanted an answer/);
  assert.is(cut.passed, 3, 'all of IPv4');
  assert.ok((await nbctl('lsp-set-port-security', server.name)).ok);
  await network('True/PacketsDelivered');
});

test('a server of SB that is cut off from its cluster is not believed', async () => {
  for (const run of runs.slice(1)) await bed.crash(run);
  const evidence = await until('unknown EvidenceIncomplete');
  assert.match(JSON.stringify(evidence.problems), /\[fd00::1\]:6642 is cut off from its cluster/);
  assert.match(JSON.stringify(evidence.problems), /fd00::2.*ECONNREFUSED/);
});

test.run();
