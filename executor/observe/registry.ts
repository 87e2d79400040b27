/**
 * What SB knows of chassis, as its replicas tell it. That ovn-controller is connected says that a server answers it; that its
 * chassis stands in this SB says that it is this one, and that it can be written. Pure.
 */
import type { DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import { cut } from '../../constructs/lib/cut.ts';
import type { CentralRound, ChassisRound } from './round.ts';

export interface Registry {
  /** Every name that any replica told; undefined where none told all of its own. */
  readonly names: ReadonlySet<string> | undefined;
  /** Whether all members told their names: one that is behind may lack some. */
  readonly complete: boolean;
  /** Whether no member that is connected told of SB: what ovn-controllers call connected may be another one then. */
  readonly unseen: boolean;
}

const southbound = ({ samples }: CentralRound): DatabaseFacts[] =>
  samples.flatMap(({ second }) => (second.type === 'Evidence' ? (second.evidence.facts.sb ?? []) : []));

export function registryOf(central: CentralRound): Registry {
  const told = southbound(central);
  const lists = told.flatMap(({ chassis }) => (chassis?.names === undefined ? [] : [chassis.names]));
  return {
    names: lists.length === 0 ? undefined : new Set(lists.flat()),
    complete: lists.length === central.samples.length,
    unseen: !told.some(({ connected }) => connected),
  };
}

const namesTold = 3;

/** Who is behind, by node, by the replica that is ahead of the others; undefined where none tells. */
export function behindText(central: CentralRound, chassis: ChassisRound | undefined): string | undefined {
  const lists = southbound(central).flatMap((one) => (one.chassis === undefined ? [] : [one.chassis.behind]));
  const [behind] = lists.toSorted((a, b) => a.length - b.length);
  if (behind === undefined || behind.length === 0) return undefined;
  const nodes = new Map(
    (chassis?.samples ?? []).flatMap(({ target, outcome }) =>
      outcome.type === 'Evidence' && outcome.evidence.facts.ovsdb !== undefined
        ? [[outcome.evidence.facts.ovsdb.systemID, `node ${target.node}`] as const]
        : [],
    ),
  );
  const names = behind.map((name) => nodes.get(name) ?? `chassis ${cut(name, 64)} of no node that answers`);
  const first = names.slice(0, namesTold).join(', ');
  return names.length > namesTold ? `${first} and ${names.length - namesTold} more` : first;
}
