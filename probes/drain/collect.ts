/** What a node would take with it: the gateways that it is, and the ports that are bound to it. */
import type { FactsOf } from '../../constructs/api/evidence.ts';
import { collector, type Look } from '../daemons/look.ts';
import { ok, type Result } from '../jsonrpc/fault.ts';
import { type Json, type JsonMap, member } from '../jsonrpc/json.ts';
import { optional, setOf, uuid } from '../ovsdb/values.ts';
import type { Collectors } from '../server/collector.ts';
import { type Chassis, type DrainOptions, type Southbound, withSouthbound } from './southbound.ts';

type Facts = FactsOf<'drain'>;
type Gateways = NonNullable<Facts['gateways']>;
type Ports = NonNullable<Facts['ports']>;

/** How many are told by name; all are counted. */
const told = { gateways: 128, ports: 256, name: 256 } as const;

const text = (row: JsonMap, name: string): string => {
  const value = member(row, name);
  return typeof value === 'string' ? value : '';
};

/** The row that an optional reference names. */
const reference = (row: JsonMap, name: string): string | undefined => {
  const found = optional(member(row, name));
  return found?.present === true ? uuid(found.value) : undefined;
};

const references = (row: JsonMap, name: string): string[] =>
  (setOf(member(row, name)) ?? []).flatMap((value) => uuid(value) ?? []);

/** Priorities of OVN end at 32,767. */
const priorityOf = (value: Json | undefined): number => {
  const read = typeof value === 'bigint' || typeof value === 'number' ? Number(value) : 0;
  return Number.isInteger(read) && read >= 0 && read <= 32_767 ? read : 0;
};

const byName =
  <T>(name: (one: T) => string) =>
  (a: T, b: T): number =>
    name(a) < name(b) ? -1 : 1;

/** Gateways that a chassis is, or could become, out of the rows of the southbound database. */
export function gatewaysOf(
  chassis: string,
  ports: readonly JsonMap[],
  groups: readonly JsonMap[],
  members: readonly JsonMap[],
): Gateways {
  const own = new Map(
    members
      .filter((row) => reference(row, 'chassis') === chassis)
      .map((row) => [uuid(member(row, '_uuid')), priorityOf(member(row, 'priority'))]),
  );
  const byGroup = new Map(groups.map((row) => [uuid(member(row, '_uuid')), references(row, 'ha_chassis')]));
  const all = ports.flatMap((row) => {
    const active = reference(row, 'chassis') === chassis;
    const candidates = byGroup.get(reference(row, 'ha_chassis_group')) ?? [];
    const mine = candidates.find((id) => own.has(id));
    if (mine === undefined && !active) return [];
    const port = text(row, 'logical_port').slice(0, told.name);
    const others = candidates.filter((id) => id !== mine).length;
    return [{ port, priority: mine === undefined ? 0 : (own.get(mine) ?? 0), active, others }];
  });
  return { count: all.length, first: all.sort(byName(({ port }) => port)).slice(0, told.gateways) };
}

async function gateways(southbound: Southbound, { id }: Chassis): Promise<Result<Gateways>> {
  if (id === undefined) return ok({ count: 0, first: [] });
  const read = await southbound.rows(
    {
      table: 'Port_Binding',
      columns: ['logical_port', 'chassis', 'ha_chassis_group'],
      where: [['type', '==', 'chassisredirect']],
    },
    { table: 'HA_Chassis_Group', columns: ['_uuid', 'ha_chassis'] },
    { table: 'HA_Chassis', columns: ['_uuid', 'chassis', 'priority'] },
  );
  if (read.type !== 'ok') return read;
  const [ports = [], groups = [], members = []] = read.value;
  return ok(gatewaysOf(id, ports, groups, members));
}

async function ports(southbound: Southbound, { id }: Chassis): Promise<Result<Ports>> {
  if (id === undefined) return ok({ count: 0, first: [] });
  const where = [['chassis', '==', ['uuid', id]]];
  const read = await southbound.rows({ table: 'Port_Binding', columns: ['logical_port', 'type'], where });
  if (read.type !== 'ok') return read;
  const all = (read.value[0] ?? [])
    .map((row) => ({ name: text(row, 'logical_port').slice(0, told.name), type: text(row, 'type').slice(0, 64) }))
    .sort(byName(({ name }) => name));
  return ok({ count: all.length, first: all.slice(0, told.ports) });
}

const chassisOf = async (
  _southbound: Southbound,
  { systemID, id }: Chassis,
): Promise<Result<NonNullable<Facts['chassis']>>> => ok({ systemID, ...(id === undefined ? {} : { chassisUUID: id }) });

export const drainCollectors = (options: DrainOptions): Collectors<'drain'> => {
  const asking =
    <T>(ask: (southbound: Southbound, chassis: Chassis) => Promise<Result<T>>) =>
    (look: Look): Promise<Result<T>> =>
      withSouthbound(options, look, ask);
  return {
    chassis: collector(options, asking(chassisOf)),
    gateways: collector(options, asking(gateways)),
    ports: collector(options, asking(ports)),
  };
};
