import type { DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import { emptyDatabasesMemory, judgeDatabases } from '../../executor/observe/ovndb.ts';
import type { CentralRound, CentralSample } from '../../executor/observe/round.ts';
import { centralSample, databaseFacts, uuidOf } from './observe-support.ts';

export const judge = (
  round: CentralRound,
  model: 'clustered' | 'standalone' = 'clustered',
  tick = 0,
  memory = emptyDatabasesMemory,
) => judgeDatabases(round, { model, tick }, memory);

/** `status/reason` and the message, of a round. */
export function told(
  round: CentralRound,
  ...more: [('clustered' | 'standalone')?, number?, typeof emptyDatabasesMemory?]
) {
  const { condition } = judge(round, ...more);
  return { head: `${condition.status}/${condition.reason}`, message: condition.message };
}

/** Both passes of a member with the same change of NB in the second one only. */
export const secondNb =
  (member: number, changes: Partial<DatabaseFacts>) =>
  (n: number): CentralSample | undefined =>
    n === member
      ? { ...centralSample(n, 3), second: centralSample(n, 3, { nb: databaseFacts('nb', n, 3, changes) }).second }
      : undefined;

export const other = 'dddddddd-0000-4000-8000-00000000000f';
export const four = (n: number): DatabaseFacts['members'][number] => ({
  sid: uuidOf(n).slice(0, 4),
  address: `ssl:10.0.0.${n}:6643`,
  self: false,
});
/** What the leader counts, with a change. */
export const counted = (...members: DatabaseFacts['members'][number][]) => ({ members });
