/** One look at what is live, and what each object needs for it. A handful of lists, however many objects there are. */
import type { Ledger } from '../../constructs/api/ledger.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KindRef, KubeObject } from '../kube/types.ts';
import { definitionGone } from './definition.ts';
import type { Item } from './items.ts';
import { type KindInUse, kindsOf, ledgerOnlyKinds, readLive, servedKind } from './live.ts';
import { type LiveIndex, type Need, needsOf } from './need.ts';

export interface SurveyInput {
  readonly client: KubeClient;
  readonly release: string;
  readonly items: readonly Item[];
  readonly ledger: Ledger;
  readonly overridden: ReadonlySet<string>;
  readonly signal: AbortSignal;
}

export interface Survey {
  readonly live: LiveIndex;
  readonly needs: ReadonlyMap<string, Need>;
  /** How a `group/Kind` is addressed now; undefined for one that is served no more. */
  readonly kinds: ReadonlyMap<string, KindRef | undefined>;
  /** Kinds that only the ledger names and that are not served, although their definition may exist: why. */
  readonly doubtful: ReadonlyMap<string, Problem>;
  /** Kinds, as `apiVersion kind`, that may only be listed namespace by namespace. */
  readonly narrow: ReadonlySet<string>;
  /** Ids that a person has taken out of management, whether the payload names them or not. */
  readonly overridden: ReadonlySet<string>;
}

export type SurveyOutcome =
  | { readonly ok: true; readonly survey: Survey }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Lists what is live and decides what each item needs. */
export async function survey(input: SurveyInput): Promise<SurveyOutcome> {
  const { client, signal, release, items, ledger } = input;
  const own = kindsOf(items);
  const kinds = new Map<string, KindRef | undefined>(
    own.map((kind) => [`${groupOf(kind.apiVersion)}/${kind.kind}`, kind]),
  );
  const problems: Problem[] = [];
  const doubtful = new Map<string, Problem>();
  const former: KindInUse[] = [];
  for (const { group, kind, namespaces } of ledgerOnlyKinds(ledger, own)) {
    const served = await servedKind(client, group, kind, signal);
    if ('problem' in served) problems.push(served.problem);
    else {
      kinds.set(`${group}/${kind}`, served.found);
      if (served.found !== undefined) former.push({ ...served.found, namespaces });
      const doubt = served.found === undefined ? await definitionGone(client, group, kind, signal) : undefined;
      if (doubt !== undefined) doubtful.set(`${group}/${kind}`, doubt);
    }
  }
  if (problems.length > 0) return { ok: false, problems };
  const read = await readLive(client, { release, kinds: [...own, ...former] }, signal);
  if (!read.ok) return { ok: false, problems: read.problems };
  const live = new Map([...read.live].map(([id, object]: [string, KubeObject]) => [id, object.metadata]));
  const { overridden } = input;
  const needs = needsOf(items, { release, ledger, live, overridden });
  return { ok: true, survey: { live, needs, kinds, doubtful, narrow: read.narrow, overridden } };
}
