/** The chassis that a replica of SB knows, and which of them are behind: out of rows of one moment. Pure. */
import type { DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import { integer, type JsonMap, member } from '../jsonrpc/json.ts';
import type { Snapshot } from '../ovsdb/methods.ts';

export type ChassisList = NonNullable<DatabaseFacts['chassis']>;

export const chassisColumns = {
  SB_Global: ['nb_cfg'],
  Chassis: ['name'],
  Chassis_Private: ['name', 'nb_cfg'],
} as const;

/** Bytes of these rows that are read at all: those of some two thousand chassis. */
export const chassisBytes = 448 * 1024;

/** More names than these, or longer ones, are not told: the answer has other things to tell. */
const told = { names: 4_096, bytes: 176 * 1024, name: 256, behind: 16 } as const;

const rowsOf = (tables: Snapshot, table: string): JsonMap[] => [...(tables.get(table)?.values() ?? [])];
const nameOf = (row: JsonMap): string => {
  const name = member(row, 'name');
  return typeof name === 'string' ? name.slice(0, told.name) : '';
};
const cfgOf = (row: JsonMap | undefined): bigint => integer(member(row, 'nb_cfg')) ?? 0n;

export function chassisList(tables: Snapshot): ChassisList {
  const all = rowsOf(tables, 'Chassis')
    .map(nameOf)
    .filter((name) => name !== '')
    .sort();
  const handedOut = cfgOf(rowsOf(tables, 'SB_Global')[0]);
  const behind = rowsOf(tables, 'Chassis_Private')
    .map((row) => ({ name: nameOf(row), cfg: cfgOf(row) }))
    .filter(({ name, cfg }) => name !== '' && cfg < handedOut)
    .sort((a, b) => (a.cfg === b.cfg ? (a.name < b.name ? -1 : 1) : a.cfg < b.cfg ? -1 : 1));
  const bytes = all.reduce((sum, name) => sum + Buffer.byteLength(name) + 3, 0);
  const whole = all.length <= told.names && bytes <= told.bytes;
  return {
    count: all.length,
    ...(whole ? { names: all } : {}),
    behind: behind.slice(0, told.behind).map(({ name }) => name),
  };
}
