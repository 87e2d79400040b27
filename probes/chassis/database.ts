/** The node's own database: who the chassis is and where it is told to look. */
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { ChassisFacts } from '../../constructs/api/evidence/chassis.ts';
import { identify } from '../daemons/identity.ts';
import type { Look } from '../daemons/look.ts';
import { column, DatabaseServer, onlyRow } from '../daemons/server.ts';
import { fault, ok, type Result } from '../jsonrpc/fault.ts';
import { type JsonMap, member } from '../jsonrpc/json.ts';
import { optional, stringMap } from '../ovsdb/values.ts';
import { readPid } from '../unixctl/find.ts';
import type { ChassisOptions } from './options.ts';

type NodeDatabase = NonNullable<ChassisFacts['ovsdb']>;

const daemon = 'ovsdb-server (Open_vSwitch)';
const split = (text: string | undefined): string[] => (text ?? '').split(',').filter((part) => part !== '');

/** Longest values that the facts hold; what is longer is no name of anything. */
const longest = { systemID: 256, remote: 1024, hostname: 253, version: 128, encaps: 16 } as const;

type Settings = (name: string) => string | undefined;

/** As ovn-controller reads its settings: one that names the chassis goes before the one for whatever chassis there is. */
const settingsOf =
  (ids: ReadonlyMap<string, string>, systemID: string): Settings =>
  (name) =>
    ids.get(`${name}-${systemID}`) ?? ids.get(name);

function readEncaps(setting: Settings): Result<NodeDatabase['encaps']> {
  const addresses = split(setting('ovn-encap-ip'));
  const wrong = addresses.find((address) => isIP(address) === 0);
  if (wrong !== undefined) return fault('protocol', `${daemon}: ovn-encap-ip holds what is no address`);
  const encaps = split(setting('ovn-encap-type')).flatMap((type) => addresses.map((ip) => ({ type, ip })));
  return encaps.length > longest.encaps || encaps.some(({ type }) => type.length > 32)
    ? fault('tooLarge', `${daemon}: more tunnel ends than can be told`)
    : ok(encaps);
}

/** The only row of the node's database as facts, and whether it can be told. */
export function readNode(id: string, row: JsonMap): Result<Omit<NodeDatabase, 'daemon'>> {
  const ids = column(daemon, row, 'external_ids', stringMap);
  if (ids.type !== 'ok') return ids;
  const systemID = ids.value.get('system-id') ?? '';
  const setting = settingsOf(ids.value, systemID);
  const remote = setting('ovn-remote') ?? '';
  if (systemID === '') return fault('protocol', `${daemon}: external_ids has no system-id`);
  if (systemID.length > longest.systemID || remote.length > longest.remote)
    return fault('tooLarge', `${daemon}: system-id or ovn-remote is longer than can be told`);
  const encaps = readEncaps(setting);
  if (encaps.type !== 'ok') return encaps;
  const version = optional(member(row, 'ovs_version'));
  const hostname = setting('hostname')?.slice(0, longest.hostname);
  return ok({
    systemID,
    chassisUUID: id,
    remote,
    encaps: encaps.value,
    // In whatever case it is written.
    matchNorthdVersion: setting('ovn-match-northd-version')?.toLowerCase() === 'true',
    ...(hostname === undefined ? {} : { hostname }),
    ...(version?.present === true && typeof version.value === 'string'
      ? { version: version.value.slice(0, longest.version) }
      : {}),
  });
}

export async function nodeDatabaseFacts(options: ChassisOptions, look: Look): Promise<Result<NodeDatabase>> {
  const { switchDirectory, procDirectory } = options;
  const socket = join(switchDirectory, 'db.sock');
  const pid = await readPid(join(switchDirectory, 'ovsdb-server.pid'));
  const where = procDirectory === undefined ? {} : { procDirectory };
  const identity = await identify({ daemon, socket, pid, program: 'ovsdb-server', ...where });
  if (identity.type !== 'ok') return identity;
  const opened = await DatabaseServer.open(daemon, socket, look);
  if (opened.type !== 'ok') return opened;
  try {
    const rows = await opened.value.rows('Open_vSwitch', 'Open_vSwitch', ['external_ids', 'ovs_version']);
    if (rows.type !== 'ok') return rows;
    const row = onlyRow(`${daemon}: Open_vSwitch`, rows.value);
    if (row.type !== 'ok') return row;
    const node = readNode(...row.value);
    return node.type === 'ok' ? ok({ ...node.value, daemon: identity.value }) : node;
  } finally {
    opened.value.close();
  }
}
