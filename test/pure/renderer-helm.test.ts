import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { sha256Digest } from '../../constructs/lib/digest.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import type { Checked } from '../../renderer/charts/types.ts';
import { createProofStore, type ProofStore, proofOf, renderDeterministic } from '../../renderer/helm/determinism.ts';
import { type Helm, type HelmOptions, openHelm } from '../../renderer/helm/open.ts';
import { readOutput } from '../../renderer/helm/output.ts';
import type { RenderInput, RenderOutput } from '../../renderer/helm/types.ts';
import { findHelmVersion } from '../../renderer/lock/helm.ts';
import { run } from '../../renderer/process/run.ts';
import { chartFiles } from '../standins/chart.ts';

const canary = 'canary-19ac44';
const input: RenderInput = {
  chart: {
    name: 'kube-ovn',
    digest: sha256Digest('chart'),
    files: chartFiles().map((file) => ({ path: file.path.slice('kube-ovn/'.length), bytes: file.bytes })),
    without: [],
  },
  values: {},
  releaseName: 'ovn',
  namespace: 'kube-system',
  kubernetesVersion: '1.34.2',
};

async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-helm-test-'));
  try {
    await body(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** A program that answers `version` like Helm 3.19.2 and does `template` by the given shell text. */
async function fakeHelm(folder: string, template: string, version = 'v3.19.2+g1234567'): Promise<HelmOptions> {
  const program = join(folder, 'helm');
  await writeFile(
    program,
    `#!/bin/sh\nPATH=/usr/bin:/bin\nif [ "$1" = version ]; then echo '${version}'; exit 0; fi\n${template}\n`,
  );
  await chmod(program, 0o755);
  const tempFolder = await mkdtemp(join(folder, 'tmp-'));
  return { program, version: 'v3.19.2', tempFolder };
}

function value<T>(outcome: Checked<T>): T {
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.value;
}

function problem(outcome: Checked<unknown>): { reason: string; message: string } {
  if (outcome.ok) throw new Error('expected a problem');
  const [first] = outcome.problems;
  if (first === undefined) throw new Error('a failure without problems');
  assert.not.match(JSON.stringify(outcome.problems), canary);
  return first;
}

async function renderWith(
  template: string,
  options: Partial<HelmOptions> = {},
): Promise<{ outcome: Checked<RenderOutput>; left: string[] }> {
  let result: { outcome: Checked<RenderOutput>; left: string[] } | undefined;
  await withFolder(async (folder) => {
    const fake = await fakeHelm(folder, template);
    const helm = value(await openHelm({ ...fake, ...options }));
    const outcome = await helm.render(input, 0);
    result = { outcome, left: await readdir(fake.tempFolder) };
  });
  if (result === undefined) throw new Error('unreachable');
  return result;
}

test('only the exact locked version is used', async () => {
  await withFolder(async (folder) => {
    for (const said of ['v3.19.2', '3.19.2', 'v3.19.2+gabc'])
      assert.is(value(await openHelm(await fakeHelm(folder, '', said))).version, '3.19.2');
    for (const said of ['v3.19.1+g1', 'v3.19.20', 'v3.19', 'v3.19.2-rc.1', 'nonsense', ''])
      assert.is(problem(await openHelm(await fakeHelm(folder, '', said))).reason, 'HelmVersionMismatch', said);
    const missing = problem(await openHelm({ program: join(folder, 'absent'), version: '3.19.2', tempFolder: folder }));
    assert.is(missing.reason, 'HelmUnavailable');
    assert.match(
      JSON.stringify(await openHelm({ program: join(folder, 'absent'), version: '3.19.2', tempFolder: folder })),
      'install Helm 3.19.2',
    );
  });
});

test('another Helm than 3 is refused by name, found version and way out, by lock and by render', async () => {
  await withFolder(async (folder) => {
    for (const said of ['v4.0.1+g12500dd', 'v2.17.0']) {
      const found = said.replace(/^v|\+.*/g, '');
      const fake = await fakeHelm(folder, 'exit 1', said);
      const rendered = problem(await openHelm(fake));
      assert.is(rendered.reason, 'HelmUnsupported');
      assert.match(rendered.message, `Helm ${found} is not supported`);
      assert.match(JSON.stringify(rendered), 'install Helm 3.19.2 beside it, and set KEELSON_HELM');
      const relock = problem(await openHelm({ ...fake, version: found }));
      assert.match(JSON.stringify(relock), 'and lock it with keelson lock');
      const locked = await findHelmVersion(fake.program).catch((error: unknown) => error);
      assert.instance(locked, ProblemError);
      const [told] = (locked as ProblemError).problems;
      assert.equal([told?.reason, told?.value], ['HelmUnsupported', found]);
    }
    assert.is(await findHelmVersion((await fakeHelm(folder, '')).program), '3.19.2');
  });
});

test('Helm gets a home of its own, its arguments and nothing of our environment', async () => {
  process.env.KEELSON_TEST_CANARY = canary;
  const { outcome, left } = await renderWith(`
printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: seen}\\ndata:\\n'
printf '  args: "%s"\\n' "$*"
env | grep -v '^_=' | sort | sed 's/=.*//' | tr '\\n' ' ' | sed 's/^/  env: "/; s/$/"\\n/'
echo "  kubeconfig: '$(tr '\\n' ' ' <$KUBECONFIG)'"
echo "  values: '$(cat values.json)'"
`);
  delete process.env.KEELSON_TEST_CANARY;
  const [object] = value(outcome).objects;
  const data = (object?.data ?? {}) as JsonObject;
  assert.is(
    data.args,
    'template ovn chart.tgz --values values.json --namespace kube-system --kube-version v1.34.2 --include-crds --skip-tests',
  );
  assert.is(
    String(data.env).trim(),
    'HELM_CACHE_HOME HELM_CONFIG_HOME HELM_DATA_HOME HELM_PLUGINS HELM_REGISTRY_CONFIG HELM_REPOSITORY_CACHE HELM_REPOSITORY_CONFIG HOME KUBECONFIG LANG PWD TMPDIR TZ',
  );
  assert.match(String(data.kubeconfig), 'server: https://127.0.0.1:1');
  assert.is(data.values, '{}');
  assert.equal(left, []);
});

test('failure, silence and floods end in one problem, redacted, with nothing left behind', async () => {
  const failing = await renderWith(
    `echo 'Error: template: password=${canary}' >&2; echo 'Use --debug flag to render out invalid YAML' >&2; exit 1`,
  );
  assert.is(problem(failing.outcome).reason, 'HelmFailed');
  assert.match(problem(failing.outcome).message, 'helm template kube-ovn ended with 1: Error: template');
  assert.not.match(problem(failing.outcome).message, '--debug');
  const silent = await renderWith('sleep 60 & sleep 60', { limitMs: 300 });
  assert.match(problem(silent.outcome).message, 'did not end within 300ms');
  const flood = await renderWith('yes "a: b"', { maxOutputBytes: 100_000 });
  assert.match(problem(flood.outcome).message, 'wrote more than 100000 bytes');
  const shout = await renderWith('yes x >&2', { maxOutputBytes: 100_000 });
  assert.match(problem(shout.outcome).message, 'bytes of messages');
  for (const { left } of [failing, silent, flood, shout]) assert.equal(left, []);
});

test('output that is no list of objects names its template', () => {
  const text =
    '---\n# Source: kube-ovn/templates/a.yaml\nkind: ConfigMap\napiVersion: v1\nmetadata: {}\n---\n# Source: kube-ovn/templates/b.yaml\n- list\n';
  const { objects, problems } = readOutput(text);
  assert.equal(objects, []);
  assert.equal(
    problems.map((found) => [found.reason, found.file]),
    [
      ['HelmOutputInvalid', 'kube-ovn/templates/a.yaml'],
      ['HelmOutputInvalid', 'kube-ovn/templates/b.yaml'],
    ],
  );
  const broken = readOutput('---\n# Source: kube-ovn/templates/c.yaml\na: 1\na: 2\n');
  assert.equal(
    broken.problems.map((found) => found.file),
    ['kube-ovn/templates/c.yaml'],
  );
});

/** Pauses take no time: the scripted Helm does not look at the clock. */
const known = (proofs: ProofStore) => ({ proofs, clock: { ...systemClock, sleep: async () => undefined } });

/** A Helm whose n-th render gives the n-th list. */
function scripted(...renders: JsonObject[][]): Helm & { calls: number[] } {
  const calls: number[] = [];
  return {
    version: '3.19.2',
    calls,
    async render(_, offsetHours) {
      calls.push(offsetHours);
      return { ok: true, value: { objects: renders[calls.length - 1] ?? [], stripped: [] } };
    },
  };
}

test('a proof of determinism is made once, kept in the folder, and honoured from the lock', async () => {
  await withFolder(async (folder) => {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { x: '1', y: '2' } };
    const reordered = { kind: 'ConfigMap', data: { y: '2', x: '1' }, metadata: { name: 'a' }, apiVersion: 'v1' };
    const first = scripted([object], [reordered]);
    const { proof } = value(await renderDeterministic(first, input, known(createProofStore([], folder))));
    assert.equal(first.calls, [-12, 14]);
    const second = scripted([object]);
    value(await renderDeterministic(second, input, known(createProofStore([], folder))));
    assert.is(second.calls.length, 1);
    const third = scripted([object]);
    value(await renderDeterministic(third, input, known(createProofStore([proof], join(folder, 'other')))));
    assert.is(third.calls.length, 1);
    for (const changed of [
      { values: { a: 1 } },
      { namespace: 'x' },
      { releaseName: 'x' },
      { kubernetesVersion: '1.35.0' },
      { chart: { ...input.chart, without: ['x'] } },
    ]) {
      assert.not.equal(proofOf({ ...input, ...changed }, '3.19.2'), proof);
    }
    assert.equal(proofOf({ ...input, kubernetesVersion: 'v1.34.2' }, 'v3.19.2'), proof);
    await writeFile(join(folder, 'file'), '');
    value(
      await renderDeterministic(scripted([object], [object]), input, known(createProofStore([], join(folder, 'file')))),
    );
  });
});

test('every place where two renders differ is told, and nothing is remembered', async () => {
  await withFolder(async (folder) => {
    const make = (x: string, list: string[]): JsonObject => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a', namespace: 'n' },
      data: { x, list },
    });
    const proofs = known(createProofStore([], folder));
    const outcome = await renderDeterministic(
      scripted([make('1', ['a', 'b'])], [make('2', ['a', 'c'])]),
      input,
      proofs,
    );
    if (outcome.ok) throw new Error('expected problems');
    assert.equal(
      outcome.problems.map((found) => [found.reason, found.object, found.path]),
      [
        ['HelmNotDeterministic', 'ConfigMap n/a', '/data/x'],
        ['HelmNotDeterministic', 'ConfigMap n/a', '/data/list/1'],
      ],
    );
    assert.match(
      problem(await renderDeterministic(scripted([make('1', [])], []), input, proofs)).message,
      '1 and 0 objects',
    );
    assert.equal(await readdir(folder), []);
  });
});

test('an abort kills the program and its children and gives the reason of the signal', async () => {
  const controller = new AbortController();
  const reason = new Error('stopped by the test');
  setTimeout(() => controller.abort(reason), 50);
  const began = performance.now();
  const request = {
    program: '/bin/sh',
    args: ['-c', 'sleep 60 & wait'],
    env: { PATH: '/usr/bin:/bin' },
    limitMs: 60_000,
    maxBytes: 1_000,
  };
  const caught = await run({ ...request, signal: controller.signal }).catch((error: unknown) => error);
  assert.is(caught, reason);
  assert.ok(performance.now() - began < 5_000);
  const input = await run({ ...request, args: ['-c', 'cat'], input: 'to standard input' });
  assert.equal(input, { kind: 'exited', code: 0, stdout: 'to standard input', stderr: '' });
});

test.run();
