import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Problem } from '../../constructs/lib/problems.ts';
import { redact } from '../../constructs/lib/redact.ts';
import { packChart } from '../charts/archive.ts';
import type { Checked } from '../charts/types.ts';
import { type RunOutcome, run } from '../process/run.ts';
import { readOutput } from './output.ts';
import type { RenderInput, RenderOutput } from './types.ts';
import { readHelmVersion, unsupportedHelm } from './version.ts';
import { createWorkspace } from './workspace.ts';

export interface HelmOptions {
  /** Absolute path of the helm program: it is started without a PATH. */
  readonly program: string;
  /** Exact version that the lock names, with or without a leading `v`. */
  readonly version: string;
  /** Folder for temporary files. */
  readonly tempFolder: string;
  /** Where Helm's kubeconfig points; nothing is expected to listen there. */
  readonly apiServer?: string;
  readonly limitMs?: number;
  readonly maxOutputBytes?: number;
}

/** Helm, its version verified, as a function from chart and values to objects. */
export interface Helm {
  /** Without leading `v`. */
  readonly version: string;
  /** Renders once. `offsetHours` is the time zone that templates see. */
  render(input: RenderInput, offsetHours: number, signal?: AbortSignal): Promise<Checked<RenderOutput>>;
}

/** A port on which nothing can be expected to listen. */
const nowhere = 'https://127.0.0.1:1';

const remedyFor = (version: string): string => `install Helm ${version}, or lock another version with keelson lock`;

function failure(reason: string, message: string, remedy?: string): { ok: false; problems: Problem[] } {
  return { ok: false, problems: [{ reason, message, ...(remedy === undefined ? {} : { remedy }) }] };
}

/** The last lines that Helm wrote, fit for a message. */
function said(stderr: string): string {
  const lines = redact(stderr)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^Use --debug flag/.test(line));
  return lines.slice(-5).join(' ').slice(0, 2_000);
}

function explain(outcome: RunOutcome, what: string): Checked<string> {
  if (outcome.kind === 'notStarted')
    return failure('HelmUnavailable', `${what}: the program cannot be started (${outcome.code})`);
  if (outcome.kind === 'stopped') return failure('HelmFailed', `${what}: ${outcome.message}`);
  if (outcome.code !== 0) return failure('HelmFailed', `${what} ended with ${outcome.code}: ${said(outcome.stderr)}`);
  return { ok: true, value: outcome.stdout };
}

/** Helm leaves an object whose hook it does not know out of its output, and only mentions it: nothing would miss it. */
function unknownHooks(stderr: string): Problem[] {
  return [...stderr.matchAll(/skipping unknown hook: "([^"]*)"/g)].map(([, words]) => ({
    reason: 'HelmHookRefused',
    message: `the chart has a hook that Helm does not know (${words ?? ''}) and leaves out without a word in its output`,
    value: words ?? '',
    remedy: 'use a chart version without it',
  }));
}

/**
 * Finds out whether the program is exactly the locked Helm. Nothing is rendered by another version: templates may mean
 * something else there.
 */
export async function openHelm(options: HelmOptions, signal?: AbortSignal): Promise<Checked<Helm>> {
  const version = options.version.replace(/^v/, '');
  const limits = { limitMs: options.limitMs ?? 60_000, maxBytes: options.maxOutputBytes ?? 32 * 1024 * 1024 };

  interface Execution {
    readonly args: readonly string[];
    readonly offsetHours: number;
    /** Puts what the run needs into its folder. */
    readonly prepare?: (folder: string) => Promise<void>;
    readonly signal: AbortSignal | undefined;
  }

  async function exec({ args, offsetHours, prepare, signal: cancel }: Execution): Promise<RunOutcome> {
    const { program, tempFolder, apiServer = nowhere } = options;
    const workspace = await createWorkspace({ tempFolder, apiServer, offsetHours });
    try {
      await prepare?.(workspace.folder);
      const stop = cancel === undefined ? {} : { signal: cancel };
      return await run({ ...limits, ...stop, program, args, env: workspace.env, cwd: workspace.folder });
    } finally {
      await workspace.remove();
    }
  }

  const asked = explain(await exec({ args: ['version', '--short'], offsetHours: 0, signal }), 'helm version');
  if (!asked.ok)
    return { ok: false, problems: asked.problems.map((problem) => ({ ...problem, remedy: remedyFor(version) })) };
  const found = readHelmVersion(asked.value);
  const unsupported = found === undefined ? undefined : unsupportedHelm(found, version);
  if (unsupported !== undefined) return { ok: false, problems: [unsupported] };
  if (found !== version)
    return failure(
      'HelmVersionMismatch',
      `Helm is ${found ?? JSON.stringify(asked.value.trim().slice(0, 60))}, the lock says ${version}`,
      remedyFor(version),
    );

  async function render(input: RenderInput, offsetHours: number, cancel?: AbortSignal): Promise<Checked<RenderOutput>> {
    const { chart, releaseName, namespace } = input;
    const { archive, stripped } = await packChart(chart.name, chart.files, chart.without);
    const kubeVersion = `v${input.kubernetesVersion.replace(/^v/, '')}`;
    const outcome = await exec({
      args: [
        ...['template', releaseName, 'chart.tgz', '--values', 'values.json', '--namespace', namespace],
        ...['--kube-version', kubeVersion, '--include-crds', '--skip-tests'],
      ],
      offsetHours,
      signal: cancel,
      async prepare(folder) {
        await writeFile(join(folder, 'chart.tgz'), archive);
        await writeFile(join(folder, 'values.json'), JSON.stringify(input.values), { mode: 0o600 });
      },
    });
    const text = explain(outcome, `helm template ${chart.name}`);
    if (!text.ok) return text;
    const unknown = outcome.kind === 'exited' ? unknownHooks(outcome.stderr) : [];
    if (unknown.length > 0) return { ok: false, problems: unknown };
    const { objects, problems } = readOutput(text.value);
    return problems.length > 0 ? { ok: false, problems } : { ok: true, value: { objects, stripped } };
  }

  return { ok: true, value: { version, render } };
}
