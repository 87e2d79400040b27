/** Members of one RAFT cluster, each with its files where a central pod has them, and the probes' clients on their sockets. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { DatabaseFacts } from '../../constructs/api/evidence/central.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { databaseFacts } from '../../probes/central/database.ts';
import type { Result } from '../../probes/jsonrpc/fault.ts';
import { ControlSocket } from '../../probes/unixctl/control.ts';
import { eventually, type OvnBed, type ScriptRun } from './bed.ts';

const schema = '/usr/share/ovn/ovn-nb.ovsschema';
const database = 'OVN_Northbound';
export const raftAddress = (n: number): string => `tcp:127.0.0.${n}:6643`;

export class RaftBed {
  readonly #bed: OvnBed;
  readonly #runs = new Map<number, ScriptRun>();
  #cid = '';

  constructor(bed: OvnBed) {
    this.#bed = bed;
  }

  folder(n: number): string {
    return join(this.#bed.dir, `member-${n}`);
  }

  socket(n: number): string {
    return join(this.folder(n), 'ovnnb_db.sock');
  }

  async #must(...argv: string[]): Promise<string> {
    const answer = await this.#bed.command(argv, this.#bed.dirs('raft'));
    if (!answer.ok) throw new Error(`${argv.join(' ')}: ${answer.out}`);
    return answer.out;
  }

  #serve(n: number): void {
    const at = (name: string): string => join(this.folder(n), name);
    const files = [
      `--pidfile=${at('ovnnb_db.pid')}`,
      `--unixctl=${at('ovnnb_db.ctl')}`,
      `--remote=punix:${this.socket(n)}`,
    ];
    const log = ['-vconsole:off', `--log-file=${at('log')}`];
    this.#runs.set(n, this.#bed.daemon(['ovsdb-server', ...log, ...files, at('db')], this.#bed.dirs('raft')));
  }

  /** The first member, which makes the cluster. */
  async create(n: number): Promise<void> {
    await mkdir(this.folder(n));
    await this.#must('ovsdb-tool', 'create-cluster', join(this.folder(n), 'db'), schema, raftAddress(n));
    this.#cid = await this.#must('ovsdb-tool', 'db-cid', join(this.folder(n), 'db'));
    this.#serve(n);
  }

  /** Another member, which asks the given ones. */
  async join(n: number, ...remotes: readonly string[]): Promise<void> {
    await mkdir(this.folder(n));
    const file = join(this.folder(n), 'db');
    await this.#must('ovsdb-tool', `--cid=${this.#cid}`, 'join-cluster', file, database, raftAddress(n), ...remotes);
    this.#serve(n);
  }

  async crash(n: number): Promise<void> {
    const target = this.#runs.get(n);
    if (target !== undefined) await this.#bed.crash(target);
  }

  restart(n: number): void {
    this.#serve(n);
  }

  facts(n: number, limitMs = 3000): Promise<Result<DatabaseFacts>> {
    const options = { clock: systemClock, runDirectory: this.folder(n), dataDirectory: this.folder(n), limitMs };
    return databaseFacts(options, 'nb', { clock: systemClock, limitMs, signal: AbortSignal.timeout(20_000) });
  }

  /** Waits until the facts of a member are as described, and answers them. */
  until(n: number, what: string, wanted: (facts: DatabaseFacts) => boolean): Promise<DatabaseFacts> {
    return eventually(`member ${n}: ${what}`, async (saw) => {
      const result = await this.facts(n);
      saw(JSON.stringify(result));
      return result.type === 'ok' && wanted(result.value) ? result.value : undefined;
    });
  }

  async command(n: number, name: string, ...args: string[]): Promise<string> {
    const control = await ControlSocket.open({
      daemon: `member ${n}`,
      path: join(this.folder(n), 'ovnnb_db.ctl'),
      clock: systemClock,
      limitMs: 3000,
    });
    if (control.type !== 'ok') throw new Error(control.message);
    const answer = await control.value.command(name, ...args);
    control.value.close();
    if (answer.type !== 'ok') throw new Error(JSON.stringify(answer));
    return answer.value;
  }
}
