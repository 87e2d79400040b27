/**
 * Real OVN members and nodes on one machine: every process runs the entry scripts of the runtime image inside namespaces
 * of the bed's own, so that the addresses and ports are those of a real node and nothing outside is touched. All of it
 * ends with the bed's first process, and that one with the test, however the test ends.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
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

/** The bed's own network, or the machine's. */
export type Network = 'inside' | 'outside';

export type Env = Readonly<Record<string, string>>;

export class OvnBed {
  readonly dir: string;
  readonly #outer: ChildProcess;
  /** The first process inside, as the host counts. */
  readonly #first: number;
  readonly #runs = new Set<ScriptRun>();

  private constructor(dir: string, outer: ChildProcess, first: number) {
    this.dir = dir;
    this.#outer = outer;
    this.#first = first;
  }

  static async start(): Promise<OvnBed> {
    const dir = await mkdtemp(join(tmpdir(), 'keelson-ovn-'));
    const namespaces = ['--net', '--pid', '--mount', '--mount-proc', '--fork', '--kill-child=SIGKILL'];
    // It reads until the test closes its end: by itself, or because it is gone.
    const holder = 'ip link set lo up && echo ready && while read -r _; do :; done';
    const outer = spawn('unshare', [...namespaces, 'bash', '-c', holder], { stdio: ['pipe', 'pipe', 'inherit'] });
    await Promise.race([
      once(outer.stdout, 'data'),
      once(outer, 'exit').then(() => Promise.reject(new Error('no namespaces: unshare needs root'))),
    ]);
    const first = await childOf(outer.pid);
    if (first === undefined) throw new Error('the first process of the namespaces is not to be found');
    return new OvnBed(dir, outer, first);
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

  #argv(argv: readonly string[], network: Network = 'inside'): string[] {
    const namespaces = ['--pid', '--mount', ...(network === 'inside' ? ['--net'] : [])];
    return [`--target=${this.#first}`, ...namespaces, ...argv];
  }

  /** Starts a script in a process group of its own, inside the bed's network or outside it. */
  script(name: string, env: Env, network: Network = 'inside', ...args: string[]): ScriptRun {
    return this.daemon(['bash', join(scripts, name), ...args], env, network);
  }

  /** Starts a program that stays in the foreground, in the same way. */
  daemon(argv: readonly string[], env: Env, network: Network = 'inside'): ScriptRun {
    const child = spawn('nsenter', this.#argv(argv, network), {
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

  /** A connection to a port inside the bed's network, or in a network that a file there names, as somebody there opens it. */
  connect(host: string, port: number, network?: string): Duplex {
    const relay = `const s = require('node:net').connect(${port}, ${JSON.stringify(host)}); process.stdin.pipe(s).pipe(process.stdout);`;
    const within = network === undefined ? [] : ['nsenter', `--net=${network}`];
    const argv = this.#argv([...within, process.execPath, '-e', relay]);
    const child = spawn('nsenter', argv, { stdio: ['pipe', 'pipe', 'ignore'] });
    return Duplex.from({ readable: child.stdout, writable: child.stdin });
  }

  /** Ends a script as a kubelet does; answers its exit code, or `killed` after the grace period. */
  async stop(target: ScriptRun, graceMs = 20_000): Promise<number | null | 'killed'> {
    this.#runs.delete(target);
    if (target.child.exitCode !== null || target.child.signalCode !== null) return target.child.exitCode;
    const script = await childOf(target.child.pid);
    if (script !== undefined) process.kill(script, 'SIGTERM');
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
    const ended = once(this.#outer, 'exit');
    this.#outer.stdin?.end();
    await ended;
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** The only child of a process: nsenter and unshare fork once and wait. */
async function childOf(pid: number | undefined): Promise<number | undefined> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return children.trim() === '' ? undefined : Number(children.trim().split(' ')[0]);
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

/** A process id from its file, as the bed's processes count: signal it by a command in the bed. */
export async function pidOf(file: string): Promise<number> {
  return Number((await readFile(file, 'utf8')).trim());
}
