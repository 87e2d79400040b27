import { annotations, evidenceSecret, managers } from '../../constructs/api/constants.ts';
import { formatDuration } from '../../constructs/lib/duration.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { refusal } from '../courier/apply.ts';
import type { KubeClient } from '../kube/client.ts';
import { refOf } from '../kube/types.ts';
import { defaultKeeperTimings } from './keeper.ts';
import { type FormerAuthority, rotationStep, type Stage, type Succession, stageOf, trusted } from './rotation.ts';
import { type AuthorityRead, readAuthorities } from './store.ts';

/** What a person may see and ask of the authority of evidence. Keys appear nowhere in it. */

/** `signs`: now. `believed`: and not yet, or no longer, signing. */
export interface AuthorityView {
  /** First digits of the fingerprint. */
  readonly id: string;
  readonly does: 'signs' | 'believed';
  /** RFC 3339. */
  readonly from: string;
  readonly to: string;
}

export interface PkiView {
  readonly origin: 'own' | 'provided';
  readonly stage: Stage;
  /** What happens next, by itself; RFC 3339. */
  readonly next?: { readonly step: 'introduce' | 'promote' | 'retire'; readonly at: string };
  /** Whether a rotation was asked for that has not begun. */
  readonly asked: boolean;
  readonly authorities: readonly AuthorityView[];
}

export type PkiOutcome = { readonly view: PkiView } | { readonly problem: Problem };

const time = (ms: number): string => new Date(ms).toISOString();
const object = (namespace: string): string => `Secret ${namespace}/${evidenceSecret}`;
const { spreadMs, retireMs } = defaultKeeperTimings;

const viewOf = ({ id, from, to }: FormerAuthority, does: AuthorityView['does']): AuthorityView => ({
  id: id.slice(0, 12),
  does,
  from: time(from),
  to: time(to),
});

function nextOf(succession: Succession): PkiView['next'] {
  const { current, since = 0 } = succession;
  switch (stageOf(succession)) {
    case 'introduced':
      return { step: 'promote', at: time(since + spreadMs) };
    case 'promoted':
      return { step: 'retire', at: time(since + retireMs) };
    case 'steady':
      return { step: 'introduce', at: time(current.to - (current.to - current.from) / 3) };
  }
}

/** What is no authority that can be shown. */
function problemOf(read: Exclude<AuthorityRead, { type: 'own' | 'provided' }>, namespace: string): Problem {
  switch (read.type) {
    case 'absent':
      return {
        reason: 'AuthorityMissing',
        message: `${object(namespace)} does not exist`,
        object: object(namespace),
        remedy: 'name spec.images.probe in cluster.yaml, render, publish and deliver; the executor makes it',
      };
    case 'invalid':
      return {
        reason: 'AuthorityInvalid',
        message: read.message,
        object: object(namespace),
        remedy: 'mend the Secret, or remove it: the executor then makes an authority of its own',
      };
    case 'unavailable':
      return { reason: 'ReadFailed', message: read.message, object: object(namespace) };
  }
}

export async function readPki(client: KubeClient, namespace: string, signal: AbortSignal): Promise<PkiOutcome> {
  const read = await readAuthorities(client, namespace, signal);
  if (read.type === 'provided')
    return {
      view: { origin: 'provided', stage: 'steady', asked: false, authorities: [viewOf(read.authority, 'signs')] },
    };
  if (read.type !== 'own') return { problem: problemOf(read, namespace) };
  const { succession, asked } = read;
  const next = nextOf(succession);
  return {
    view: {
      origin: 'own',
      stage: stageOf(succession),
      ...(next === undefined ? {} : { next }),
      asked: asked !== undefined && asked !== succession.answered,
      authorities: trusted(succession).map((one, n) => viewOf(one, n === 0 ? 'signs' : 'believed')),
    },
  };
}

/** Asks the executor for another authority; it carries the change through by itself. `word` is one that nobody used before. */
export async function askForRotation(
  client: KubeClient,
  namespace: string,
  word: string,
  now: number,
  signal: AbortSignal,
): Promise<{ readonly asked: true } | { readonly problem: Problem }> {
  const read = await readAuthorities(client, namespace, signal);
  if (read.type === 'provided')
    return {
      problem: {
        reason: 'AuthorityProvided',
        message: `${object(namespace)} was brought along, and Keelson does not write it`,
        object: object(namespace),
        remedy: 'replace it where it comes from; the executor follows, and believes the one before for another day',
      },
    };
  if (read.type !== 'own') return { problem: problemOf(read, namespace) };
  const { succession, asked } = read;
  const waiting = asked !== undefined && asked !== succession.answered;
  const step = rotationStep(succession, word, now, defaultKeeperTimings);
  if (waiting || step.type !== 'introduce') {
    const since = succession.since === undefined ? '' : ` for ${formatDuration(Math.max(0, now - succession.since))}`;
    return {
      problem: {
        reason: 'RotationUnderWay',
        message: waiting ? 'it was asked for, and the executor has not begun' : `it is ${stageOf(succession)}${since}`,
        object: object(namespace),
        remedy: 'wait for its end; keelson pki status shows it',
      },
    };
  }
  const request = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: evidenceSecret, namespace, annotations: { [annotations.rotate]: word } },
  };
  const options = { fieldManager: managers.none, resourceVersion: read.version, signal };
  const outcome = await client.apply(request, options);
  if (outcome.type === 'created' || outcome.type === 'configured' || outcome.type === 'unchanged')
    return { asked: true };
  return { problem: refusal(refOf(request), outcome) };
}
