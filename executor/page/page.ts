/** The model of the whole page, from what a process knows. Pure. */
import { timeText } from '../../constructs/api/conditions.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { redactObject } from '../../constructs/lib/redact.ts';
import type { LedgerSummary } from '../addressbook/summary.ts';
import { type KubeObject, uidOf } from '../kube/types.ts';
import type { Observed } from '../network/evidence.ts';
import { addressesView } from './addresses.ts';
import { installationView } from './installation.ts';
import { type PageModel, pageLimits } from './model.ts';
import { releaseView } from './release.ts';

/** What a process that leads knows. */
export interface Known {
  /** When its term began, in milliseconds since 1970. */
  readonly since: number;
  readonly releases: readonly KubeObject[];
  readonly installations: readonly KubeObject[];
  readonly observed: (installationUID: string) => Observed | undefined;
  /** The address ledger, made when it is asked for; undefined: there is none, or nothing is known of it. */
  readonly addresses?: () => LedgerSummary | undefined;
}

export interface PageInput {
  readonly identity: string;
  readonly namespace: string;
  readonly planOnly: boolean;
  /** Undefined while another process leads. */
  readonly known: Known | undefined;
  /** Now, on the clock that never jumps. */
  readonly tick: number;
}

const byName = (a: KubeObject, b: KubeObject): number => {
  const [left, right] = [a, b].map(({ metadata }) => `${metadata.namespace}/${metadata.name}`) as [string, string];
  return left < right ? -1 : left > right ? 1 : 0;
};

/** Everything on it has passed the redaction point. */
export function pageModel({ identity, namespace, planOnly, known, tick }: PageInput): PageModel {
  const releases = (known?.releases ?? []).toSorted(byName);
  const installations = (known?.installations ?? []).toSorted(byName);
  const shown = {
    releases: releases.slice(0, pageLimits.releases),
    installations: installations.slice(0, pageLimits.installations),
  };
  const ledger = known?.addresses?.();
  const model: PageModel = {
    identity,
    namespace,
    planOnly,
    standing: known === undefined ? { type: 'standby' } : { type: 'leading', since: timeText(known.since) },
    installations: shown.installations.map((one) => installationView(one, known?.observed(uidOf(one)), tick)),
    releases: shown.releases.map(releaseView),
    ...(ledger === undefined ? {} : { addresses: addressesView(ledger) }),
    more: releases.length + installations.length - shown.releases.length - shown.installations.length,
  };
  return redactObject(model as unknown as JsonObject) as unknown as PageModel;
}
