/** How far a change has come, by the rows of both databases. */
import type { CentralFacts } from '../../constructs/api/evidence/central.ts';
import type { Look } from '../daemons/look.ts';
import { column, DatabaseServer, onlyRow } from '../daemons/server.ts';
import { ok, type Result } from '../jsonrpc/fault.ts';
import { integer, type JsonMap } from '../jsonrpc/json.ts';
import { stringMap } from '../ovsdb/values.ts';
import { daemonName, dataSocket } from './database.ts';
import { type CentralOptions, type DatabaseKey, databaseNames } from './options.ts';

type Progress = NonNullable<CentralFacts['progress']>;

/** The only row of a database's table of settings. */
async function globalRow(
  options: CentralOptions,
  key: DatabaseKey,
  table: string,
  columns: readonly string[],
  look: Look,
): Promise<Result<JsonMap>> {
  const opened = await DatabaseServer.open(daemonName(key), dataSocket(options, key), look);
  if (opened.type !== 'ok') return opened;
  try {
    const rows = await opened.value.rows(databaseNames[key], table, columns);
    if (rows.type !== 'ok') return rows;
    const row = onlyRow(`${daemonName(key)}: ${table}`, rows.value);
    return row.type === 'ok' ? ok(row.value[1]) : row;
  } finally {
    opened.value.close();
  }
}

/** A counter of configurations; the schema's integers have a sign, these never do. */
const counter = (value: JsonMap[string]): string | undefined => {
  const count = integer(value);
  return count === undefined || count < 0n ? undefined : String(count);
};

export async function progressFacts(options: CentralOptions, look: Look): Promise<Result<Progress>> {
  const [northbound, southbound] = await Promise.all([
    globalRow(options, 'nb', 'NB_Global', ['nb_cfg', 'sb_cfg', 'hv_cfg'], look),
    globalRow(options, 'sb', 'SB_Global', ['options'], look),
  ]);
  if (northbound.type !== 'ok') return northbound;
  if (southbound.type !== 'ok') return southbound;
  const read = (name: string): Result<string> => column(daemonName('nb'), northbound.value, name, counter);
  const [nbCfg, sbCfg, hvCfg] = [read('nb_cfg'), read('sb_cfg'), read('hv_cfg')];
  if (nbCfg.type !== 'ok') return nbCfg;
  if (sbCfg.type !== 'ok') return sbCfg;
  if (hvCfg.type !== 'ok') return hvCfg;
  const settings = column(daemonName('sb'), southbound.value, 'options', stringMap);
  if (settings.type !== 'ok') return settings;
  const version = settings.value.get('northd_internal_version')?.slice(0, 128);
  return ok({
    nbCfg: nbCfg.value,
    sbCfg: sbCfg.value,
    hvCfg: hvCfg.value,
    ...(version === undefined ? {} : { northdInternalVersion: version }),
  });
}
