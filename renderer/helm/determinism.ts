import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DeterminismProof } from '../../constructs/api/lock.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import { digestOf } from '../../constructs/lib/digest.ts';
import { canonicalJson, isObject, type JsonObject, type JsonValue, toPointer } from '../../constructs/lib/json.ts';
import { makeFolder } from '../../constructs/lib/makefolder.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { Checked } from '../charts/types.ts';
import type { Helm } from './open.ts';
import { objectLabel } from './output.ts';
import type { RenderInput, RenderOutput } from './types.ts';

/** What is already known to render the same every time. */
export interface ProofStore {
  has(proof: DeterminismProof): Promise<boolean>;
  /** Remembers a proof; failing to is no error, it only costs a second render later. */
  add(proof: DeterminismProof): Promise<void>;
}

/** What a proof is about: the chart, everything that Helm is told, and the version of Helm. */
export function proofOf(input: RenderInput, helmVersion: string): DeterminismProof {
  const { chart, values, releaseName, namespace, kubernetesVersion } = input;
  const without = [...chart.without].sort();
  return {
    chart: chart.digest,
    values: digestOf({
      values,
      releaseName,
      namespace,
      kubernetesVersion: kubernetesVersion.replace(/^v/, ''),
      without,
    }),
    helm: helmVersion.replace(/^v/, ''),
  };
}

const same = (a: DeterminismProof, b: DeterminismProof): boolean => canonicalJson({ ...a }) === canonicalJson({ ...b });

/** Proofs of the lock file, then of a folder beside the chart cache, where new ones go. */
export function createProofStore(locked: readonly DeterminismProof[], folder: string): ProofStore {
  const pathOf = (proof: DeterminismProof): string =>
    join(folder, 'determinism', digestOf({ ...proof }).slice('sha256:'.length));
  return {
    async has(proof) {
      if (locked.some((known) => same(known, proof))) return true;
      const text = await readFile(pathOf(proof), 'utf8').catch(() => '');
      return text === canonicalJson({ ...proof });
    },
    async add(proof) {
      const path = pathOf(proof);
      const part = `${path}.${randomUUID()}.part`;
      try {
        await makeFolder(join(folder, 'determinism'));
        await writeFile(part, canonicalJson({ ...proof }));
        await rename(part, path);
      } catch {
        await rm(part, { force: true }).catch(() => undefined);
      }
    },
  };
}

/** JSON pointers at which two values differ, at most `max`. */
function differences(
  a: JsonValue | undefined,
  b: JsonValue | undefined,
  path: (string | number)[],
  max: number,
): string[] {
  if (canonicalJson(a ?? null) === canonicalJson(b ?? null)) return [];
  const found: string[] = [];
  const inner = (key: string | number, left: JsonValue | undefined, right: JsonValue | undefined): void => {
    if (found.length < max) found.push(...differences(left, right, [...path, key], max - found.length));
  };
  if (isObject(a) && isObject(b))
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) inner(key, a[key], b[key]);
  else if (Array.isArray(a) && Array.isArray(b) && a.length === b.length)
    for (const [index, item] of a.entries()) inner(index, item, b[index]);
  else return [toPointer(path)];
  return found;
}

function compare(first: readonly JsonObject[], second: readonly JsonObject[]): Problem[] {
  const remedy =
    'random values, keys and times must not be made while rendering; put them into a Secret beforehand, or use another chart';
  if (first.length !== second.length)
    return [
      {
        reason: 'HelmNotDeterministic',
        message: `two renders gave ${first.length} and ${second.length} objects`,
        remedy,
      },
    ];
  return first.flatMap((object, index) =>
    differences(object, second[index], [], 5).map((path) => ({
      reason: 'HelmNotDeterministic',
      message: 'two renders of the same inputs differ here',
      object: objectLabel(object),
      path,
      remedy,
    })),
  );
}

/** The ends of the world's clocks: 26 hours apart, so never on the same date. */
const [west, east] = [-12, 14];

/** The two renders of a proof never begin in the same second of the day. */
const apartMs = 1_000;

/**
 * Renders a chart whose output is known, or now shown, to depend on nothing but its inputs: without a remembered proof it is
 * rendered twice, in other folders, a second later and under another time zone, and every difference is a problem.
 */
export async function renderDeterministic(
  helm: Helm,
  input: RenderInput,
  { proofs, clock }: { readonly proofs: ProofStore; readonly clock: Clock },
  signal?: AbortSignal,
): Promise<Checked<RenderOutput & { readonly proof: DeterminismProof }>> {
  const proof = proofOf(input, helm.version);
  const first = await helm.render(input, west, signal);
  if (!first.ok) return first;
  if (!(await proofs.has(proof))) {
    await clock.sleep(apartMs, signal);
    const second = await helm.render(input, east, signal);
    if (!second.ok) return second;
    const problems = compare(first.value.objects, second.value.objects);
    if (problems.length > 0) return { ok: false, problems };
    await proofs.add(proof);
  }
  return { ok: true, value: { ...first.value, proof } };
}
