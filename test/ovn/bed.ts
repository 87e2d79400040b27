/**
 * Real OVN members and nodes on one machine: every process runs the entry scripts of the runtime image inside one
 * network namespace of its own, so that the addresses and ports are those of a real node and nothing outside is touched.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';

const run = promisify(execFile);
const scripts = new URL('../charts/runtime/', import.meta.url).pathname;

export interface Answer {
  readonly ok: boolean;
  readonly out: string;
}

export interface ScriptRun {
  readonly child: ChildProcess;
  /** What the script and its daemons wrote so far. */
  readonly output: () => string;
  readonly ended: Promise<number | null>;
}

export type Env = Readonly<Record<string, string>>;

export class OvnBed {
  readonly dir: string;
  readonly #holder: ChildProcess;
  readonly #runs = new Set<ScriptRun>();

  private constructor(dir: string, holder: ChildProcess) {
    this.dir = dir;
    this.#holder = holder;
  }

  static async start(): Promise<OvnBed> {
    const dir = await mkdtemp(join(tmpdir(), 'keelson-ovn-'));
    const holder = spawn('unshare', ['--net', 'bash', '-c', 'ip link set lo up && echo ready && exec sleep infinity'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    if (holder.stdout === null) throw new Error('the holder of the network namespace has no output');
    await Promise.race([
      once(holder.stdout, 'data'),
      once(holder, 'exit').then(() => Promise.reject(new Error('no network namespace: unshare --net needs root'))),
    ]);
    return new OvnBed(dir, holder);
  }

  /** The environment of a member or node: its directories, below the bed's own. */
  dirs(name: string): Env {
    const at = (part: string) => join(this.dir, name, part);
    return {
      OVN_RUNDIR: at('run-ovn'),
      OVN_DBDIR: at('etc-ovn'),
      OVN_LOGDIR: at('log-ovn'),
      OVS_RUNDIR: at('run-openvswitch'),
      OVS_DBDIR: at('etc-openvswitch'),
      OVS_LOGDIR: at('log-openvswitch'),
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    };
  }

  #argv(argv: readonly string[]): string[] {
    return [`--net=/proc/${this.#holder.pid}/ns/net`, ...argv];
  }

  /** Starts a script in a process group of its own, inside the bed's network or outside it. */
  script(name: string, env: Env, network: 'inside' | 'outside' = 'inside', ...args: string[]): ScriptRun {
    const argv = ['bash', join(scripts, name), ...args];
    const child = spawn(network === 'inside' ? 'nsenter' : 'env', network === 'inside' ? this.#argv(argv) : argv, {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-20_000);
      });
    }
    const ended = once(child, 'exit').then(([code]) => code as number | null);
    const started: ScriptRun = { child, output: () => output, ended };
    this.#runs.add(started);
    return started;
  }

  /** Runs a command in the namespace to its end; a failure is an answer. */
  async command(argv: readonly string[], env: Env): Promise<Answer> {
    try {
      const { stdout } = await run('nsenter', this.#argv(argv), { env, timeout: 20_000, maxBuffer: 16 * 1024 * 1024 });
      return { ok: true, out: stdout.trim() };
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      return { ok: false, out: `${stdout}${stderr}`.trim() };
    }
  }

  /** Runs one of the scripts to its end, as a probe does. */
  probe(name: string, env: Env, ...args: string[]): Promise<Answer> {
    return this.command(['bash', join(scripts, name), ...args], env);
  }

  /** Ends a script as a kubelet does; answers its exit code, or `killed` after the grace period. */
  async stop(target: ScriptRun, graceMs = 20_000): Promise<number | null | 'killed'> {
    this.#runs.delete(target);
    if (target.child.exitCode !== null || target.child.signalCode !== null) return target.child.exitCode;
    target.child.kill('SIGTERM');
    const grace = new AbortController();
    try {
      return await Promise.race([target.ended, systemClock.sleep(graceMs, grace.signal).then(() => 'killed' as const)]);
    } finally {
      grace.abort();
      killGroup(target);
    }
  }

  /** kill -9 of the script and of every daemon that it started. */
  async crash(target: ScriptRun): Promise<void> {
    this.#runs.delete(target);
    killGroup(target);
    await target.ended;
  }

  async close(): Promise<void> {
    for (const target of [...this.#runs]) await this.crash(target);
    this.#holder.kill('SIGKILL');
    await rm(this.dir, { recursive: true, force: true });
  }
}

function killGroup(target: ScriptRun): void {
  if (target.child.pid === undefined) return;
  try {
    process.kill(-target.child.pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Polls until the check answers something; the time-out tells what was seen last. */
export function eventually<T>(
  what: string,
  probe: (saw: (text: string) => void) => Promise<T | undefined>,
  limitMs = 30_000,
): Promise<T> {
  return waitFor({ what, limitMs, intervalMs: 100, clock: systemClock, probe });
}

/** A process id from its file, once the process has written it. */
export async function pidOf(file: string): Promise<number> {
  return Number((await readFile(file, 'utf8')).trim());
}
