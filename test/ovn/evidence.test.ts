/** The whole way of evidence with real daemons: their sockets, the probes' programs as their image has them, the executor's end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { probeContainers } from '../../constructs/api/constants.ts';
import { pullEvidence } from '../../executor/evidence/pull.ts';
import type { ProbeTarget } from '../../executor/evidence/target.ts';
import { bundleProbe, probeEnvironment, probeFlags } from '../../images/probe.ts';
import { downwardOf, executorBed, subjectOf, tokenOf } from '../pure/evidence-bed.ts';
import { type Env, eventually, OvnBed, pidOf } from './bed.ts';

const test = suite('evidence');
/** Of 60 MiB that a probe may take. */
const memoryLimitKiB = 58 * 1024;
const executor = await executorBed();
await executor.believe([await executor.newAuthority('first')]);
const source = (path: string): string => fileURLToPath(new URL(`../../bin/${path}`, import.meta.url));
const program = await bundleProbe({ entry: source('probe.ts'), offer: source('probe-offer.ts') }, executor.directory);
const bed = await OvnBed.start();
const central: Env = { ...bed.dirs('central'), POD_IP: '127.0.0.2', NODE_IPS: '', OVN_LEADER_PROBE_INTERVAL: '1' };
const node: Env = { ...bed.dirs('node'), NODE_NAME: 'node-a', POD_IP: '127.0.0.10', OVN_DB_IPS: '127.0.0.2' };
const running: { stop(): Promise<void> }[] = [];
test.before(() => {
  bed.script('start-db.sh', central);
  bed.script('start-ovs.sh', node);
});
test.after(async () => {
  for (const one of running) await one.stop();
  await bed.close();
  await executor.stop();
});

/** Starts the program beside the daemons whose folders the environment names. */
async function probe<K extends 'central' | 'chassis' | 'drain'>(kind: K, n: number, env: Env) {
  const subject = { ...subjectOf(n), container: probeContainers[kind] };
  executor.know(subject);
  const trust = join(executor.directory, `trust-${n}`);
  await mkdir(trust);
  await symlink(executor.authoritiesFile, join(trust, 'ca.crt'));
  await writeFile(join(trust, 'token'), tokenOf(subject));
  const port = await executor.freePort();
  const folders = ['--ovn-run', env.OVN_RUNDIR, '--ovn-data', env.OVN_DBDIR, '--ovs-run', env.OVS_RUNDIR].map(String);
  const args = ['probe', kind, '--port', String(port), '--trust', trust, '--limit-ms', '2000', ...folders];
  const child = spawn(process.execPath, [...probeFlags, program, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...probeEnvironment, ...downwardOf(subject) },
  });
  const ended = once(child, 'exit');
  running.push({
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  });
  for await (const line of createInterface({ input: child.stderr })) if (line.includes('listening')) break;
  child.stderr.resume();
  const target: ProbeTarget<K> = { ...subject, kind, addresses: ['127.0.0.1'] };
  const options = executor.pulling([port], { limitMs: 20_000 });
  return {
    async ask() {
      const outcome = await pullEvidence(target, options, AbortSignal.timeout(30_000));
      if (outcome.type !== 'Evidence') throw new Error(JSON.stringify(outcome));
      return outcome.evidence;
    },
    async peakKiB(): Promise<number> {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
      return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]);
    },
  };
}

test('central and a chassis answer through mTLS what their daemons say, within their memory', async () => {
  const [a, b] = [await probe('central', 1, central), await probe('chassis', 2, node)];
  const facts = await eventually('complete facts of central', async (saw) => {
    const { complete, facts: found, problems } = await a.ask();
    saw(JSON.stringify(problems));
    return complete && found.northd?.state === 'active' ? found : undefined;
  });
  assert.is(facts.nb?.name, 'OVN_Northbound');
  await eventually('a chassis that is connected', async (saw) => {
    const { complete, facts: found, problems } = await b.ask();
    saw(JSON.stringify([found, problems]));
    return complete && found.controller?.connected === true ? found : undefined;
  });
  for (let turn = 0; turn < 40; turn += 1) {
    assert.ok((await a.ask()).complete);
    assert.ok((await b.ask()).complete);
  }
  const peaks = [await a.peakKiB(), await b.peakKiB()];
  console.log(
    `probes of central and chassis: ${peaks.map((kib) => `${(kib / 1024).toFixed(1)} MiB`).join(', ')} at most`,
  );
  for (const peak of peaks) assert.ok(peak < memoryLimitKiB, `${peak} KiB`);
});

test('a daemon that is frozen is named, the others are told, and all is told again once it goes on', async () => {
  const one = await probe('chassis', 3, node);
  await eventually('a complete answer', async () => ((await one.ask()).complete ? true : undefined));
  const pid = String(await pidOf(join(node.OVS_RUNDIR ?? '', 'ovs-vswitchd.pid')));
  await bed.command(['kill', '-STOP', pid], node);
  try {
    const { complete, facts, problems } = await one.ask();
    assert.is(complete, false);
    assert.equal(
      problems.map(({ component, code }) => [component, code]),
      [['vswitchd', 'timeout']],
    );
    assert.ok(facts.ovsdb !== undefined && facts.controller !== undefined);
  } finally {
    await bed.command(['kill', '-CONT', pid], node);
  }
  await eventually('a complete answer again', async () => ((await one.ask()).complete ? true : undefined));
});

test('what a node would take with it: the gateway that it is, and the ports that are bound to it', async () => {
  const one = await probe('drain', 4, node);
  const vs = ['ovs-vsctl', `--db=unix:${node.OVS_RUNDIR}/db.sock`, '--timeout=5'];
  // The bed's network is its own, and the probe is outside of it.
  const remote = `external_ids:ovn-remote="unix:${central.OVN_RUNDIR}/ovnsb_db.sock"`;
  assert.ok((await bed.command([...vs, 'set', 'open', '.', remote], node)).ok);
  const { facts } = await eventually('a chassis that is registered', async (saw) => {
    const evidence = await one.ask();
    saw(JSON.stringify(evidence.problems));
    return evidence.complete && evidence.facts.chassis?.chassisUUID !== undefined ? evidence : undefined;
  });
  assert.equal(facts.ports, { count: 0, first: [] });
  const nb = ['ovn-nbctl', `--db=unix:${central.OVN_RUNDIR}/ovnnb_db.sock`, '--timeout=5'];
  const systemID = String(facts.chassis?.systemID);
  const router = 'lr-add r -- lrp-add r r-out 02:00:00:00:00:01 192.0.2.1/24 -- ls-add s -- lsp-add s s-r';
  const joined = '-- lsp-set-type s-r router -- lsp-set-addresses s-r router -- lsp-set-options s-r router-port=r-out';
  const bound = '-- ls-add pods -- lsp-add pods pod-1 -- lsp-set-addresses pod-1 dynamic';
  const gateway = ['--', 'lrp-set-gateway-chassis', 'r-out', systemID, '20'];
  const made = await bed.command([...nb, ...`${router} ${joined} ${bound}`.split(' '), ...gateway], central);
  assert.ok(made.ok, made.out);
  const port = 'add-port br-int pod-1 -- set Interface pod-1 type=internal external_ids:iface-id=pod-1';
  const plugged = await bed.command([...vs, ...port.split(' ')], node);
  assert.ok(plugged.ok, plugged.out);
  const found = await eventually('the gateway and the port', async (saw) => {
    const { facts: seen, problems } = await one.ask();
    saw(JSON.stringify([seen, problems]));
    const active = seen.gateways?.first.some((each) => each.active);
    return active === true && seen.ports?.first.some(({ name }) => name === 'pod-1') ? seen : undefined;
  });
  assert.equal(found.gateways?.first, [{ port: 'cr-r-out', priority: 20, active: true, others: 0 }]);
  for (let turn = 0; turn < 40; turn += 1) assert.ok((await one.ask()).complete);
  const peak = await one.peakKiB();
  console.log(`probe of what a node would take along: ${(peak / 1024).toFixed(1)} MiB at most`);
  assert.ok(peak < memoryLimitKiB, `${peak} KiB`);
});

test('a thousand chassis in SB are told within the memory of a probe', async () => {
  const env = bed.dirs('large');
  const [run, data] = [String(env.OVN_RUNDIR), String(env.OVN_DBDIR)];
  for (const folder of [run, data]) await mkdir(folder, { recursive: true });
  for (const key of ['nb', 'sb']) {
    const [at, file] = [`${run}/ovn${key}_db`, `${data}/ovn${key}_db.db`];
    const made = await bed.command(['ovsdb-tool', 'create', file, `/usr/share/ovn/ovn-${key}.ovsschema`], env);
    assert.ok(made.ok, made.out);
    const sockets = [`--pidfile=${at}.pid`, `--unixctl=${at}.ctl`, `--remote=punix:${at}.sock`];
    bed.daemon(['ovsdb-server', '-vconsole:off', ...sockets, file], env);
  }
  const one = await probe('central', 5, env);
  await eventually('both servers', async () => ((await one.ask()).facts.sb === undefined ? undefined : true));
  for (let part = 0; part < 8; part += 1) {
    const rows = Array.from({ length: 125 }, (_, n) => {
      const id = 125 * part + n;
      const name = `${String(id).padStart(8, '0')}-0000-4000-8000-000000000000`;
      const [type, ip] = ['geneve', `10.${(id >> 8) & 255}.${id & 255}.1`];
      return [
        { op: 'insert', table: 'Encap', row: { type, ip, chassis_name: name }, 'uuid-name': `e${id}` },
        { op: 'insert', table: 'Chassis', row: { name, encaps: ['named-uuid', `e${id}`] } },
        { op: 'insert', table: 'Chassis_Private', row: { name } },
      ];
    });
    const text = JSON.stringify(['OVN_Southbound', ...rows.flat()]);
    const client = ['ovsdb-client', '--timeout=10', 'transact', `unix:${run}/ovnsb_db.sock`, text];
    const written = await bed.command(client, env);
    assert.ok(written.ok && !written.out.includes('error'), written.out.slice(-500));
  }
  for (let turn = 0; turn < 40; turn += 1) {
    const { facts } = await one.ask();
    assert.equal([facts.sb?.chassis?.count, facts.sb?.chassis?.names?.length], [1_000, 1_000]);
  }
  const peak = await one.peakKiB();
  console.log(`probe of central with a thousand chassis: ${(peak / 1024).toFixed(1)} MiB at most`);
  assert.ok(peak < memoryLimitKiB, `${peak} KiB`);
});

test.run();
