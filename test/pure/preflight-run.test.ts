/** Jobs that look at nodes: made, read, resumed after a crash at any await, taken away; against a model of the API server. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { evidenceSchema } from '../../constructs/api/evidence/words.ts';
import { preflightJobs } from '../../constructs/api/preflight.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject, ObjectRef } from '../../executor/kube/types.ts';
import { hostJob, type PreflightPlan } from '../../executor/network/preflight-job.ts';
import { preflightUnder } from '../../executor/network/preflight-run.ts';
import type { WriteGuard } from '../../executor/release/domain.ts';

const plan: PreflightPlan = {
  namespace: 'kube-system',
  installationUID: 'installation-uid',
  image: `registry.example.com/probe@sha256:${'f'.repeat(64)}`,
  pullSecrets: [{ name: 'pull' }],
  question: { database: '/etc/origin/ovn', ports: [6641], cni: '/etc/cni/net.d', primary: true, ipv6: false },
  nodes: ['n1', 'n2', 'n3'],
};

// biome-ignore lint/suspicious/noExplicitAny: tests read objects loosely
type Loose = any;

class Died extends Error {}

/** What a pod of a node says; undefined: it still waits. */
type Answers = (node: string, pod: { uid: string; nonce: string }) => JsonObject | string | undefined;

const facts = (state: string): JsonObject => ({
  database: {
    path: '/etc/origin/ovn',
    state,
    entries: state === 'occupied' ? ['ovnnb_db.db'] : [],
    freeBytes: '99999999999',
  },
  ports: [{ port: 6641, free: true }],
  cni: { path: '/etc/cni/net.d', files: [] },
  kernel: { release: '6.8.0', modules: [], ipv6: true },
});

function words(node: string, { uid, nonce }: { uid: string; nonce: string }, state = 'absent'): string {
  const at = '2026-01-01T00:00:00Z';
  return JSON.stringify({
    schema: evidenceSchema,
    kind: 'host',
    nonce,
    observation: { startedAt: at, endedAt: at, elapsedMs: 1 },
    subject: {
      namespace: 'kube-system',
      pod: 'p',
      podUID: uid,
      container: 'keelson-host-probe',
      node,
      nodeBootID: 'boot',
    },
    probe: { version: '1' },
    complete: true,
    facts: facts(state),
    problems: [],
  });
}

/** Jobs and pods of one namespace, with what controllers and kubelets make of them. */
class Model {
  readonly jobs = new Map<string, Loose>();
  readonly pods = new Map<string, Loose>();
  readonly uids = new Set<string>();
  answers: Answers = (node, pod) => words(node, pod);
  dryRuns = 0;
  #next = 0;

  #uid = (): string => {
    this.#next += 1;
    return `00000000-0000-4000-8000-${String(this.#next).padStart(12, '0')}`;
  };

  put(job: KubeObject): Loose {
    const name = job.metadata.name ?? '';
    const uid = this.#uid();
    this.uids.add(uid);
    const made = { ...structuredClone(job), metadata: { ...structuredClone(job.metadata), uid } };
    this.jobs.set(name, made);
    return made;
  }

  /** One step of the controllers: pods for Jobs, and their last words. */
  step(): void {
    for (const job of this.jobs.values()) {
      const { nodeName, containers } = job.spec.template.spec;
      const uid = job.metadata.uid;
      let pod = [...this.pods.values()].find((one) => one.metadata.ownerReferences[0].uid === uid);
      if (pod === undefined) {
        const podUID = this.#uid();
        pod = {
          metadata: {
            name: `${job.metadata.name}-x`,
            uid: podUID,
            labels: job.metadata.labels,
            ownerReferences: [{ kind: 'Job', uid, controller: true }],
          },
          spec: { nodeName },
          status: { phase: 'Pending' },
        };
        this.pods.set(podUID, pod);
      }
      const nonce = containers[0].args.find((arg: string) => arg.startsWith('--nonce='))?.slice(8) ?? '';
      const said = this.answers(nodeName, { uid: pod.metadata.uid, nonce });
      if (said === undefined) continue;
      if (typeof said !== 'string') Object.assign(said.job === true ? job : pod, { status: said.status });
      else
        pod.status = {
          phase: 'Succeeded',
          containerStatuses: [{ name: 'keelson-host-probe', state: { terminated: { message: said } } }],
        };
    }
  }

  /** The verbs that are used; `tap` sees every call before it has its effect, and after. */
  client(tap: (when: 'before' | 'after') => void = () => undefined): KubeClient {
    const call = async <T>(effect: () => T): Promise<T> => {
      tap('before');
      const out = effect();
      tap('after');
      return out;
    };
    const listed = (items: Iterable<Loose>, selector: string) => {
      const [key = '', value = ''] = selector.split('=');
      return { type: 'listed', items: [...items].filter((one) => one.metadata.labels?.[key] === value) };
    };
    return {
      list: (selection: { kind: string; labelSelector: string }) =>
        call(() => {
          this.step();
          return listed((selection.kind === 'Job' ? this.jobs : this.pods).values(), selection.labelSelector);
        }),
      apply: (object: KubeObject, { dryRun = false }: { dryRun?: boolean }) =>
        call(() => {
          const there = this.jobs.has(object.metadata.name ?? '');
          if (dryRun) {
            this.dryRuns += 1;
            return { type: there ? 'configured' : 'created', object };
          }
          assert.not(there, 'a Job that is there is never written');
          return { type: 'created', object: this.put(object) };
        }),
      delete: (ref: ObjectRef, { uid }: { uid: string }) =>
        call(() => {
          const job = this.jobs.get(ref.name);
          if (job === undefined) return { type: 'absent' };
          if (job.metadata.uid !== uid) return { type: 'preconditionFailed', message: 'another' };
          this.jobs.delete(ref.name);
          for (const [name, pod] of this.pods) if (pod.metadata.ownerReferences[0].uid === uid) this.pods.delete(name);
          return { type: 'deleted' };
        }),
    } as unknown as KubeClient;
  }
}

/** Time that goes on only while somebody sleeps. */
function steadyClock(): Clock {
  let now = 0;
  return {
    now: () => now,
    monotonic: () => now,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      now += ms;
    },
  };
}

const guard = (): WriteGuard & { released: number } => {
  const made = {
    released: 0,
    check: () => undefined,
    release: async () => {
      made.released += 1;
    },
  };
  return made;
};

let nonces = 0;
const depsOf = (client: KubeClient, signal = new AbortController().signal) => ({
  client,
  signal,
  clock: steadyClock(),
  limitMs: 30_000,
  pollMs: 1_000,
  nonce: () => {
    nonces += 1;
    return nonces.toString(16).padStart(48, '0');
  },
});

const told = async (model: Model, client = model.client()): Promise<string[]> =>
  (await preflightUnder(guard(), plan, depsOf(client))).map(
    ({ reason, object, message }) => `${reason} ${object}: ${message}`,
  );

const jobs = suite('jobs of the preflight');

jobs('finds nothing on free nodes, and leaves nothing behind', async () => {
  const model = new Model();
  const held = guard();
  assert.equal(await preflightUnder(held, plan, depsOf(model.client())), []);
  assert.is(model.uids.size, 3);
  assert.is(model.jobs.size, 0);
  assert.is(held.released, 1);
});

jobs('tells of every node at once, and takes the Jobs away as well', async () => {
  const model = new Model();
  model.answers = (node, pod) => {
    if (node === 'n1') return words(node, pod, 'occupied');
    if (node === 'n2') return undefined;
    return { job: true, status: { conditions: [{ type: 'Failed', status: 'True', reason: 'DeadlineExceeded' }] } };
  };
  const found = await told(model);
  assert.is(found.length, 3);
  assert.match(found[0] ?? '', /^DatabaseRootOccupied Node n1/);
  assert.match(found[1] ?? '', /^PreflightIncomplete Node n2: nothing within 30 s: pod .* is Pending/);
  assert.match(found[2] ?? '', /^PreflightIncomplete Node n3: Job .* has failed: DeadlineExceeded/);
  assert.is(model.jobs.size, 0);
});

jobs('believes nobody but the pod of its own Job on the node itself', async () => {
  const liars: Record<string, Answers> = {
    'another nonce': (node, { uid }) => words(node, { uid, nonce: 'a'.repeat(48) }),
    'another pod': (node, { nonce }) => words(node, { uid: '00000000-0000-4000-8000-00000000dead', nonce }),
    'another node': (_node, pod) => words('n9', pod),
    'no evidence': () => 'ok',
    'no words': () => '',
  };
  for (const [what, answers] of Object.entries(liars)) {
    const model = new Model();
    model.answers = answers;
    const found = await told(model);
    assert.is(found.filter((one) => one.startsWith('PreflightIncomplete Node')).length, 3, what);
  }
});

jobs('asks again where a look is over, or was for something else, and goes on with one that runs', async () => {
  const model = new Model();
  const running = model.put(hostJob(plan, 'keelson-preflight-0', 'n1', 'b'.repeat(48)));
  const over = model.put(hostJob(plan, 'keelson-preflight-1', 'n2', 'c'.repeat(48)));
  over.status = { conditions: [{ type: 'Complete', status: 'True' }] };
  const other = model.put(hostJob({ ...plan, image: 'other' }, 'keelson-preflight-2', 'n3', 'd'.repeat(48)));
  const surplus = model.put(hostJob(plan, 'keelson-preflight-5', 'n6', 'e'.repeat(48)));
  const stale = new Set([over, other, surplus].map(({ metadata }) => metadata.uid));
  let resumed = false;
  model.answers = (node, pod) => {
    resumed ||= pod.nonce === 'b'.repeat(48);
    return words(node, pod, /^([cde])\1*$/.test(pod.nonce) ? 'occupied' : 'absent');
  };
  assert.equal(await told(model), [], 'what stale Jobs say is not believed');
  assert.is(model.uids.size, 6, 'two Jobs are made');
  assert.ok(resumed && model.uids.has(running.metadata.uid));
  assert.not([...model.jobs.values()].some(({ metadata }) => stale.has(metadata.uid)));
  assert.is(model.jobs.size, 0);
});

jobs('leaves a Job of that name alone that is none of its own, and says so', async () => {
  const model = new Model();
  const foreign = model.put({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'keelson-preflight-1', namespace: 'kube-system' },
    spec: { template: { spec: { nodeName: 'nx', containers: [{ args: [] }] } } },
  });
  const before = structuredClone(foreign);
  const found = await told(model);
  assert.equal(found.length, 1);
  assert.match(found[0] ?? '', /^PreflightIncomplete .*keelson-preflight-1: another object has this name/);
  assert.equal(model.jobs.get('keelson-preflight-1').spec, before.spec);
  assert.is(model.jobs.size, 1);
});

jobs('converges after a death at any await, and never makes more Jobs than nodes beside one another', async () => {
  let calls = 0;
  await told(
    new Model(),
    new Model().client(() => {
      calls += 1;
    }),
  );
  assert.ok(calls > 10);
  for (let at = 1; at <= calls; at += 1) {
    const model = new Model();
    model.answers = (node, pod) => words(node, pod, node === 'n2' ? 'occupied' : 'empty');
    let seen = 0;
    const mortal = model.client(() => {
      seen += 1;
      if (seen === at) throw new Died();
    });
    const first = await told(model, mortal).catch((error: unknown) => {
      if (!(error instanceof Died)) throw error;
      return undefined;
    });
    assert.ok(model.jobs.size <= plan.nodes.length, `death ${at}`);
    const found = first ?? (await told(model));
    assert.equal(found.length, 1, `death ${at}: ${found.join('; ')}`);
    assert.match(found[0] ?? '', /^DatabaseRootOccupied Node n2/);
    assert.is(model.jobs.size, 0, `death ${at}`);
  }
});

jobs('ends at once when a newer payload takes its place, and when the Lease is lost', async () => {
  const reason = new Error('a newer payload');
  for (const lost of [false, true]) {
    const model = new Model();
    const [outer, inner] = [new AbortController(), new AbortController()];
    model.answers = () => {
      if (model.jobs.size === 3) (lost ? inner : outer).abort(reason);
      return undefined;
    };
    const held = { ...guard(), signal: inner.signal };
    const ended = preflightUnder(held, plan, depsOf(model.client(), outer.signal));
    if (lost)
      assert.equal(
        (await ended).map((one) => one.reason),
        ['LeaseUnavailable'],
      );
    else assert.is(await ended.catch((error: unknown) => error), reason);
    assert.is(model.jobs.size, 3, 'what runs stays for the next run');
  }
});

jobs('reads and nothing else: no token, no write to the host, no folder that a look could make', () => {
  const { spec } = hostJob(plan, 'keelson-preflight-0', 'n1', 'b'.repeat(48)) as Loose;
  const pod = spec.template.spec;
  assert.is(pod.automountServiceAccountToken, false);
  assert.is(pod.nodeName, 'n1');
  assert.equal(pod.volumes, [{ name: 'host-0', hostPath: { path: '/etc', type: 'Directory' } }]);
  const [container] = pod.containers;
  assert.equal(container.volumeMounts, [{ name: 'host-0', mountPath: '/host/etc', readOnly: true }]);
  assert.equal(container.securityContext.capabilities, { drop: ['ALL'], add: ['DAC_READ_SEARCH'] });
  assert.is(container.securityContext.privileged, false);
  assert.is(container.securityContext.readOnlyRootFilesystem, true);
  assert.ok(spec.ttlSecondsAfterFinished > 0 && spec.activeDeadlineSeconds > 0);
  assert.ok(preflightJobs.includes('keelson-preflight-0'));
});

jobs('mounts a folder whatever the host calls it', () => {
  for (const folder of ['data_1', 'Data']) {
    const question = { ...plan.question, database: `/${folder}/ovn` };
    const job = hostJob({ ...plan, question }, 'keelson-preflight-0', 'n1', 'b'.repeat(48)) as Loose;
    const { volumes, containers } = job.spec.template.spec;
    const names = volumes.map(({ name }: Loose) => name);
    assert.equal(
      volumes.map(({ hostPath }: Loose) => hostPath.path),
      [`/${folder}`, '/etc'],
    );
    assert.equal(
      containers[0].volumeMounts.map(({ name, mountPath }: Loose) => [name, mountPath]),
      [
        [names[0], `/host/${folder}`],
        [names[1], '/host/etc'],
      ],
    );
    assert.is(new Set(names).size, 2);
    for (const name of names) assert.match(name, /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
  }
});

jobs.run();
