import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { writeKubeconfig } from '../apiserver/shared.ts';
import { type FaultProxy, startFaultProxy } from '../faults/proxy.ts';
import { exited, kill9, spawnTied } from '../tools/process.ts';
import { until } from './kubeBed.ts';
import { is, payloadMutations, sliceBed } from './slice-bed.ts';
import { buildPayload, slicePhases, testKey } from './slice-payload.ts';

const program = new URL('../../bin/keelson.ts', import.meta.url).pathname;

interface Started {
  readonly pid: number;
  lines(): string[];
  /** The port of its metrics. */
  metricsPort(): Promise<number>;
  terminate(): Promise<{ code: number | null; ms: number }>;
  kill(): Promise<void>;
}

/** Starts the executor as its own process, as a pod would. */
function start(kubeconfig: string, namespace: string): Started {
  const args = ['executor', '--kubeconfig', kubeconfig, '--namespace', namespace, '--metrics-port', '0'];
  const child = spawnTied(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8');
  });
  const lines = (): string[] => text.split('\n').filter((line) => line !== '');
  return {
    pid: child.pid ?? -1,
    lines,
    async metricsPort() {
      await until('metrics are served', () => lines().some((line) => line.includes('metrics are served')));
      const line = lines().find((candidate) => candidate.includes('metrics are served')) ?? '{}';
      return Number(JSON.parse(line).port);
    },
    async terminate() {
      const began = performance.now();
      const end = exited(child);
      child.kill('SIGTERM');
      const { code } = await end;
      return { code, ms: performance.now() - began };
    },
    kill: () => kill9(child),
  };
}

test('the executor as a process: the whole way through a proxy that counts, then a quick hand-over', async () => {
  const bed = await sliceBed();
  const folder = await mkdtemp(join(tmpdir(), 'keelson-slice-'));
  let proxy: FaultProxy | undefined;
  const processes: Started[] = [];
  try {
    const { names, system, server } = bed;
    proxy = await startFaultProxy(server);
    const { plan } = proxy;
    const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server, { url: proxy.url });
    const built = await buildPayload({ release: names.release, phases: slicePhases(names), key: testKey });
    await bed.deliver(built);
    await bed.applyRelease(built);
    const first = start(kubeconfig, system);
    processes.push(first);
    // A machine that is busy takes long to load a program; what comes then has limits of its own.
    await until('the first leads', () => first.lines().some((line) => line.includes('lease leading')), 60_000);
    await bed.makeReady();
    await bed.untilStatus('Ready', (s) => is(s, 'Ready', 'True'), 60_000);
    assert.is(payloadMutations(plan, system).length, 12);
    const written = plan.mutations();
    const ledgerAt = written.findIndex(({ name }) => name?.startsWith('keelson-ledger-') === true);
    const objectAt = written.findIndex(
      ({ namespace, resource }) => resource === 'namespaces' || namespace === names.namespace,
    );
    assert.ok(ledgerAt >= 0 && ledgerAt < objectAt, 'the ledger is written before the first object');
    assert.equal(
      [
        ...new Set(
          written.filter(({ subresource }) => subresource === 'status').map(({ fieldManager }) => fieldManager),
        ),
      ],
      ['keelson-status'],
    );

    const metrics = await (await fetch(`http://127.0.0.1:${await first.metricsPort()}/metrics`)).text();
    assert.match(metrics, 'keelson_leader 1');
    assert.match(metrics, `keelson_release_state{release="${names.release}",state="Reconciling"} 1`);
    assert.match(metrics, `keelson_release_objects{release="${names.release}",what="done"} 12`);

    const ended = await first.terminate();
    assert.is(ended.code, 0);
    console.log(`SIGTERM to exit: ${ended.ms.toFixed(0)} ms`);
    assert.ok(ended.ms < 5_000, `${ended.ms} ms`);
    const leasePath = `/apis/coordination.k8s.io/v1/namespaces/${system}/leases/keelson-executor`;
    const { body: lease } = await server.admin.expect('GET', leasePath);
    assert.is(lease.spec.holderIdentity ?? '', '', 'the Lease was given up');

    // The next process leads at once and has nothing to do.
    plan.resetLog();
    const second = start(kubeconfig, system);
    processes.push(second);
    await until('the second leads', () => second.lines().some((line) => line.includes('lease leading')), 60_000);
    await until('it has looked', () => plan.requests({ verb: 'list', resource: 'daemonsets' }).length >= 2);
    assert.equal(payloadMutations(plan, system), []);
    for (const line of [...first.lines(), ...second.lines()])
      assert.ok(JSON.parse(line).msg !== undefined, 'logs are JSON');
  } finally {
    for (const started of processes) await started.kill();
    await bed.close();
    await proxy?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test.run();
